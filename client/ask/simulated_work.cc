#include "client/ask/simulated_work.h"

#include <cstdint>
#include <filesystem>

#include "client/text/quantity.h"
#include "simulator/perceptron.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kExampleValuesMax = std::uint64_t{1} << 28;  // 1 GiB of inputs

void Check(const sim::v1::NoisyQuadratic& model, spec::FieldChecks& checks) {
  const std::string place = "loss.noisy_quadratic.";
  checks.Whole(place + "segments", model.segments(), {1, model.dimension()});
  if (model.loss_floor() > model.initial_loss()) {
    checks.Add(place + "loss_floor", "found " + FormatNumber(model.loss_floor()) +
                                         ", allowed is a loss_floor of at most initial_loss");
  }
}

void Check(const sim::v1::Synthetic& data, spec::FieldChecks& checks) {
  const std::uint64_t samples = data.samples() + data.validation_samples();
  if (samples * data.features() > kExampleValuesMax) {
    checks.Add("loss.perceptron.synthetic",
               "found " + std::to_string(samples) + " samples of " +
                   std::to_string(data.features()) + " features, allowed are " +
                   std::to_string(kExampleValuesMax) + " values in all");
  }
}

// Sets the hidden layers, too, where the file leaves them open.
void Complete(sim::v1::Perceptron* model, spec::FieldChecks& checks) {
  const std::string place = "loss.perceptron.";
  for (int i = 0; i < model->hidden_size(); ++i) {
    checks.Whole(place + "hidden[" + std::to_string(i) + "]", model->hidden(i), {1, 65536});
  }
  const bool hidden = model->hidden_size() > 0;
  if (hidden && model->linear()) checks.Add(place + "linear", "has no hidden layers");
  if (!hidden && !model->linear()) {
    for (const std::size_t width : simulator::PerceptronOptions().hidden) model->add_hidden(width);
  }
  if (model->has_synthetic()) Check(model->synthetic(), checks);
}

// An absolute path stays what it is.
void Complete(sim::v1::Curve* curve, const std::string& folder, spec::FieldChecks& checks) {
  if (curve->file().empty()) {
    checks.Missing("loss.curve.file",
                   "give the path of a CSV file with the columns samples and loss");
  }
  if (curve->file().starts_with('/')) return;
  curve->set_file((std::filesystem::path(folder) / curve->file()).lexically_normal().string());
}

}  // namespace

SimulatedWork ReadWork(const sim::v1::Cluster& cluster, const std::string& folder,
                       spec::FieldChecks& checks) {
  SimulatedWork work = {.model = cluster.model(), .loss = cluster.loss()};
  if (work.loss.has_noisy_quadratic()) Check(work.loss.noisy_quadratic(), checks);
  if (work.loss.has_perceptron()) Complete(work.loss.mutable_perceptron(), checks);
  if (work.loss.has_curve()) Complete(work.loss.mutable_curve(), folder, checks);
  return work;
}

}  // namespace tactus::client
