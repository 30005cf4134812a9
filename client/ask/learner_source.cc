#include "client/ask/learner_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "agent/data/option_fields.h"
#include "client/ask/curve_file.h"
#include "coordinator/spec/resolve.h"
#include "coordinator/spec/spec_reader.h"

namespace tactus::client {
namespace {

using simulator::Examples;

constexpr std::uint64_t kValuesMax = std::uint64_t{1} << 28;  // 1 GiB of inputs
constexpr std::int64_t kClassesMax = 65536;
constexpr std::uint64_t kSamplesAtOnce = 1024;

data::DataOptions OptionsOf(const spec::ResolvedSpec& spec) {
  data::DataOptions options;
  spec::SpecReader reader(spec->data());
  Fields(reader, options);
  return options;
}

// Why a perceptron cannot learn these; empty when it can.
std::string Unfit(const data::Dataset& dataset, std::uint64_t samples) {
  const data::TensorSpec& inputs = dataset.inputs().front();
  const data::TensorSpec& targets = dataset.targets();
  if (dataset.inputs().size() > 1 || inputs.type != data::ElementType::kFloat32 ||
      targets.type != data::ElementType::kInt64 || targets.ElementsPerSample() != 1) {
    return "data: the loss model perceptron learns real inputs with one class a sample: cifar, idx "
           "or numpy; else give loss.perceptron.synthetic";
  }
  if (samples * inputs.ElementsPerSample() <= kValuesMax) return "";
  return "data: found " + std::to_string(samples) + " samples of " +
         std::to_string(inputs.ElementsPerSample()) + " values, allowed for a perceptron are " +
         std::to_string(kValuesMax) + " in all";
}

// The first `samples` of a data set.
absl::StatusOr<Examples> Load(const data::Dataset& dataset, std::uint64_t samples) {
  const std::string unfit = Unfit(dataset, samples);
  if (!unfit.empty()) return absl::InvalidArgumentError(unfit);
  Examples examples;
  examples.features = dataset.inputs().front().ElementsPerSample();
  examples.inputs.resize(samples * examples.features);
  std::vector<std::int64_t> labels(samples);
  for (std::uint64_t first = 0; first < samples; first += kSamplesAtOnce) {
    std::vector<std::uint64_t> indices(std::min(kSamplesAtOnce, samples - first));
    std::iota(indices.begin(), indices.end(), first);
    dataset.Read(indices,
                 std::as_writable_bytes(
                     std::span(examples.inputs)
                         .subspan(first * examples.features, indices.size() * examples.features)),
                 std::as_writable_bytes(std::span(labels).subspan(first, indices.size())));
  }
  const auto [least, most] = std::ranges::minmax(labels);
  if (least < 0 || most >= kClassesMax) {
    return absl::InvalidArgumentError("data: found classes " + std::to_string(least) + " to " +
                                      std::to_string(most) + ", allowed are 0 to 65535");
  }
  examples.classes = static_cast<std::uint32_t>(std::max<std::int64_t>(2, most + 1));
  examples.labels.assign(labels.begin(), labels.end());
  return examples;
}

simulator::NoisyQuadraticOptions OptionsOf(const sim::v1::NoisyQuadratic& model) {
  return {.dimension = model.dimension(),
          .segments = model.segments(),
          .condition = model.condition(),
          .initial_loss = model.initial_loss(),
          .loss_floor = model.loss_floor(),
          .gradient_noise = model.gradient_noise(),
          .loss_noise = model.loss_noise()};
}

simulator::SyntheticOptions OptionsOf(const sim::v1::Synthetic& data) {
  return {.samples = data.samples(),
          .features = data.features(),
          .classes = data.classes(),
          .separation = data.separation(),
          .seed = data.seed()};
}

std::shared_ptr<const Examples> Shared(Examples examples) {
  return std::make_shared<const Examples>(std::move(examples));
}

}  // namespace

absl::StatusOr<LearnerSource::Lesson> LearnerSource::OpenLesson(const sim::v1::Perceptron& model,
                                                                const v1::JobSpec& spec) {
  Lesson lesson{.options = {.hidden = {model.hidden().begin(), model.hidden().end()}}};
  if (model.has_synthetic()) {
    simulator::SyntheticOptions examples = OptionsOf(model.synthetic());
    lesson.training = Shared(MakeSyntheticExamples(examples));
    examples.first = examples.samples;
    examples.samples = model.synthetic().validation_samples();
    if (examples.samples > 0) lesson.validation = Shared(MakeSyntheticExamples(examples));
    return lesson;
  }
  const data::DataOptions options = OptionsOf(spec::Resolve(spec));
  const absl::StatusOr<data::Split> split = data::OpenData(options);
  if (!split.ok()) return split.status();
  absl::StatusOr<Examples> training = Load(*split->train, split->train->size());
  if (!training.ok()) return training.status();
  const std::uint64_t most = options.validation_samples_max;
  if (split->validation != nullptr && most > 0) {
    absl::StatusOr<Examples> validation =
        Load(*split->validation, std::min(most, split->validation->size()));
    if (!validation.ok()) return validation.status();
    // The highest class may be in one of the two alone.
    training->classes = validation->classes = std::max(training->classes, validation->classes);
    lesson.validation = Shared(*std::move(validation));
  }
  lesson.training = Shared(*std::move(training));
  return lesson;
}

absl::StatusOr<LearnerSource> LearnerSource::Open(const SimulatedWork& work,
                                                  const v1::JobSpec& spec) {
  const std::uint64_t train_samples = work.model.train_samples();
  if (work.loss.has_perceptron()) {
    absl::StatusOr<Lesson> lesson = OpenLesson(work.loss.perceptron(), spec);
    if (!lesson.ok()) return lesson.status();
    return LearnerSource(*std::move(lesson));
  }
  if (work.loss.has_curve()) {
    const sim::v1::Curve& curve = work.loss.curve();
    absl::StatusOr<std::vector<simulator::LossPoint>> points = work.points;
    if (work.points.empty()) points = ReadCurveFile(curve.file());
    if (!points.ok()) return points.status();
    return LearnerSource(simulator::RecordedCurveOptions{
        .points = *std::move(points), .train_samples = train_samples, .noise = curve.noise()});
  }
  simulator::NoisyQuadraticOptions options = OptionsOf(work.loss.noisy_quadratic());
  options.train_samples = train_samples;
  return LearnerSource(options);
}

std::unique_ptr<simulator::Learner> LearnerSource::Make(std::uint64_t seed) const {
  if (const auto* lesson = std::get_if<Lesson>(&content_)) {
    return std::make_unique<simulator::Perceptron>(lesson->options, lesson->training,
                                                   lesson->validation);
  }
  if (const auto* curve = std::get_if<simulator::RecordedCurveOptions>(&content_)) {
    simulator::RecordedCurveOptions options = *curve;
    options.seed = seed;
    return std::make_unique<simulator::RecordedCurve>(std::move(options));
  }
  simulator::NoisyQuadraticOptions options = std::get<simulator::NoisyQuadraticOptions>(content_);
  options.seed = seed;
  return std::make_unique<simulator::NoisyQuadratic>(options);
}

}  // namespace tactus::client
