#include "client/ask/simulated_work.h"

#include <algorithm>
#include <filesystem>

#include "client/ask/durations.h"
#include "client/text/quantity.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kExampleValuesMax = std::uint64_t{1} << 28;  // 1 GiB of inputs

LossModel LossOf(const sim::v1::NoisyQuadratic& message, spec::FieldChecks& checks) {
  const std::string place = "loss.noisy_quadratic.";
  checks.Whole(place + "segments", message.segments(), {1, message.dimension()});
  if (message.loss_floor() > message.initial_loss()) {
    checks.Add(place + "loss_floor", "found " + FormatNumber(message.loss_floor()) +
                                         ", allowed is a loss_floor of at most initial_loss");
  }
  return simulator::NoisyQuadraticOptions{.dimension = message.dimension(),
                                          .segments = message.segments(),
                                          .condition = message.condition(),
                                          .initial_loss = message.initial_loss(),
                                          .loss_floor = message.loss_floor(),
                                          .gradient_noise = message.gradient_noise(),
                                          .loss_noise = message.loss_noise()};
}

SyntheticData SyntheticOf(const sim::v1::Synthetic& message, spec::FieldChecks& checks) {
  const std::uint64_t samples = message.samples() + message.validation_samples();
  if (samples * message.features() > kExampleValuesMax) {
    checks.Add("loss.perceptron.synthetic",
               "found " + std::to_string(samples) + " samples of " +
                   std::to_string(message.features()) + " features, allowed are " +
                   std::to_string(kExampleValuesMax) + " values in all");
  }
  return {.training = {.samples = message.samples(),
                       .features = message.features(),
                       .classes = message.classes(),
                       .separation = message.separation(),
                       .seed = message.seed()},
          .validation_samples = message.validation_samples()};
}

LossModel LossOf(const sim::v1::Perceptron& message, spec::FieldChecks& checks) {
  const std::string place = "loss.perceptron.";
  PerceptronLoss loss;
  for (int i = 0; i < message.hidden_size(); ++i) {
    checks.Whole(place + "hidden[" + std::to_string(i) + "]", message.hidden(i), {1, 65536});
  }
  const bool hidden = message.hidden_size() > 0;
  if (hidden && message.linear()) checks.Add(place + "linear", "has no hidden layers");
  if (hidden || message.linear()) {
    loss.model.hidden.assign(message.hidden().begin(), message.hidden().end());
  }
  if (message.has_synthetic()) loss.synthetic = SyntheticOf(message.synthetic(), checks);
  return loss;
}

LossModel LossOf(const sim::v1::Curve& message, const std::string& folder,
                 spec::FieldChecks& checks) {
  const std::string& file = message.file();
  if (file.empty()) {
    checks.Missing("loss.curve.file",
                   "give the path of a CSV file with the columns samples and loss");
  }
  // An absolute path stays what it is.
  return CurveLoss{.file = file.starts_with('/')
                               ? file
                               : (std::filesystem::path(folder) / file).lexically_normal().string(),
                   .noise = message.noise()};
}

void WriteLoss(const simulator::NoisyQuadraticOptions& options, sim::v1::Loss* loss) {
  sim::v1::NoisyQuadratic& message = *loss->mutable_noisy_quadratic();
  message.set_dimension(options.dimension);
  message.set_segments(options.segments);
  message.set_condition(options.condition);
  message.set_initial_loss(options.initial_loss);
  message.set_loss_floor(options.loss_floor);
  message.set_gradient_noise(options.gradient_noise);
  message.set_loss_noise(options.loss_noise);
}

void WriteLoss(const PerceptronLoss& model, sim::v1::Loss* loss) {
  sim::v1::Perceptron& message = *loss->mutable_perceptron();
  message.mutable_hidden()->Assign(model.model.hidden.begin(), model.model.hidden.end());
  message.set_linear(model.model.hidden.empty());
  if (!model.synthetic) return;
  const simulator::SyntheticOptions& training = model.synthetic->training;
  sim::v1::Synthetic& synthetic = *message.mutable_synthetic();
  synthetic.set_samples(training.samples);
  synthetic.set_features(training.features);
  synthetic.set_classes(training.classes);
  synthetic.set_separation(training.separation);
  synthetic.set_seed(training.seed);
  synthetic.set_validation_samples(model.synthetic->validation_samples);
}

void WriteLoss(const CurveLoss& model, sim::v1::Loss* loss) {
  loss->mutable_curve()->set_file(model.file);
  loss->mutable_curve()->set_noise(model.noise);
}

}  // namespace

SimulatedWork ReadWork(const sim::v1::Cluster& cluster, const std::string& folder,
                       spec::FieldChecks& checks) {
  const sim::v1::Model& model = cluster.model();
  const sim::v1::Loss& loss = cluster.loss();
  return {.parameters = model.parameters(),
          .backward_share = model.backward_share(),
          .load_seconds = SecondsOf(model.load_time()),
          .conclude_seconds = SecondsOf(model.conclude_time()),
          .train_samples = model.train_samples(),
          .loss = loss.has_curve()        ? LossOf(loss.curve(), folder, checks)
                  : loss.has_perceptron() ? LossOf(loss.perceptron(), checks)
                                          : LossOf(loss.noisy_quadratic(), checks)};
}

void WriteWork(const SimulatedWork& work, sim::v1::Cluster* cluster) {
  sim::v1::Model& model = *cluster->mutable_model();
  if (work.parameters > 0) model.set_parameters(work.parameters);
  model.set_backward_share(work.backward_share);
  *model.mutable_load_time() = DurationOf(work.load_seconds);
  *model.mutable_conclude_time() = DurationOf(work.conclude_seconds);
  model.set_train_samples(work.train_samples);
  std::visit([&](const auto& loss) { WriteLoss(loss, cluster->mutable_loss()); }, work.loss);
}

}  // namespace tactus::client
