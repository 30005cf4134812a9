#include "client/ask/simulated_work.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "client/text/names.h"
#include "client/text/quantity.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

constexpr std::size_t kLayersMax = 16;
constexpr std::uint64_t kExampleValuesMax = std::uint64_t{1} << 28;  // 1 GiB of inputs
const std::vector<std::string> kLossNames = {"noisy_quadratic", "perceptron", "curve"};
const spec::Interval kShare = {.low = 0, .high = 1, .text = "0 to 1"};
const spec::Interval kZeroOrMore = {.low = 0, .high = 1e12, .text = "0 to 1e12"};
const spec::Interval kCondition = {.low = 1, .high = 1e12, .text = "1 to 1e12"};
const spec::Interval kLoss = {.low = -1e12, .high = 1e12, .text = "-1e12 to 1e12"};

void ReadSize(YamlFields& fields, const std::string& key, std::uint64_t most, std::size_t* value) {
  std::uint64_t whole = *value;
  fields.Whole(key, {1, most}, &whole);
  *value = whole;
}

LossModel ReadNoisyQuadratic(YamlFields fields) {
  simulator::NoisyQuadraticOptions options;
  ReadSize(fields, "dimension", 10'000'000, &options.dimension);
  ReadSize(fields, "segments", options.dimension, &options.segments);
  fields.Number("condition", kCondition, &options.condition);
  fields.Number("initial_loss", kLoss, &options.initial_loss);
  fields.Number("loss_floor", kLoss, &options.loss_floor);
  fields.Number("gradient_noise", kZeroOrMore, &options.gradient_noise);
  fields.Number("loss_noise", kZeroOrMore, &options.loss_noise);
  fields.RefuseOthers();
  if (options.loss_floor > options.initial_loss) {
    fields.Refuse(fields.Has("loss_floor") ? "loss_floor" : "initial_loss",
                  "a loss_floor of at most initial_loss");
  }
  return options;
}

SyntheticData ReadSynthetic(YamlFields fields) {
  SyntheticData synthetic;
  simulator::SyntheticOptions& training = synthetic.training;
  ReadSize(fields, "samples", 100'000'000, &training.samples);
  ReadSize(fields, "features", 65536, &training.features);
  std::uint64_t classes = training.classes;
  fields.Whole("classes", {2, 65536}, &classes);
  training.classes = static_cast<std::uint32_t>(classes);
  fields.Number("separation", kZeroOrMore, &training.separation);
  fields.Whole("seed", {0, UINT64_MAX}, &training.seed);
  std::uint64_t validation = synthetic.validation_samples;
  fields.Whole("validation_samples", {0, 10'000'000}, &validation);
  synthetic.validation_samples = validation;
  fields.RefuseOthers();
  if ((training.samples + validation) * training.features > kExampleValuesMax) {
    fields.Add("", "found " + std::to_string(training.samples + validation) + " samples of " +
                       std::to_string(training.features) + " features, allowed are " +
                       std::to_string(kExampleValuesMax) + " values in all");
  }
  return synthetic;
}

LossModel ReadPerceptron(YamlFields fields) {
  PerceptronLoss loss;
  if (fields.Has("hidden")) {
    const std::string allowed = "a list of at most 16 widths, each 1 to 65536, such as [64, 32]";
    loss.model.hidden.clear();
    for (const std::string& text : fields.Texts("hidden")) {
      const double width = ParseNumber(text).value_or(0);
      if (width != std::floor(width) || width < 1 || width > 65536) {
        fields.Add("hidden", "found \"" + text + "\", allowed is " + allowed);
        break;
      }
      loss.model.hidden.push_back(static_cast<std::size_t>(width));
    }
    if (loss.model.hidden.size() > kLayersMax) fields.Refuse("hidden", allowed);
  }
  if (std::optional<YamlFields> synthetic = fields.Map("synthetic")) {
    loss.synthetic = ReadSynthetic(*synthetic);
  }
  fields.RefuseOthers();
  return loss;
}

LossModel ReadCurve(YamlFields fields, const std::string& folder) {
  CurveLoss loss;
  fields.Text("file", &loss.file);
  fields.Flag("noise", &loss.noise);
  fields.RefuseOthers();
  if (!fields.Has("file")) {
    fields.Refuse("file", "the path of a CSV file with the columns samples and loss");
  } else if (!loss.file.empty() && loss.file.front() != '/') {
    loss.file = (std::filesystem::path(folder) / loss.file).lexically_normal().string();
  }
  return loss;
}

LossModel ReadLossMap(YamlFields fields, const std::string& folder) {
  LossModel loss;
  int given = 0;
  if (auto quadratic = fields.Map("noisy_quadratic")) {
    loss = ReadNoisyQuadratic(*quadratic);
    ++given;
  }
  if (auto perceptron = fields.Map("perceptron")) {
    loss = ReadPerceptron(*perceptron);
    ++given;
  }
  if (auto curve = fields.Map("curve")) {
    loss = ReadCurve(*curve, folder);
    ++given;
  }
  fields.RefuseOthers();
  if (given > 1) fields.Add("", "found several, allowed is one of " + JoinNames(kLossNames));
  return loss;
}

// A name alone stands for the model with its defaults; a curve has none for its file.
LossModel ReadLoss(YamlFields& file, const std::string& folder) {
  if (!file.Has("loss") || file.HasWord("loss", "noisy_quadratic")) return {};
  if (file.HasWord("loss", "perceptron")) return PerceptronLoss();
  if (file.HasMap("loss")) return ReadLossMap(*file.Map("loss"), folder);
  file.Refuse("loss", "noisy_quadratic, perceptron or {curve: {file: FILE}}");
  return {};
}

std::string Line(const std::string& key, const std::string& text) {
  return "  " + key + ": " + text + "\n";
}

std::string Text(const simulator::NoisyQuadraticOptions& options) {
  return "{noisy_quadratic: {dimension: " + std::to_string(options.dimension) +
         ", segments: " + std::to_string(options.segments) +
         ", condition: " + FormatNumber(options.condition) +
         ", initial_loss: " + FormatNumber(options.initial_loss) +
         ", loss_floor: " + FormatNumber(options.loss_floor) +
         ", gradient_noise: " + FormatNumber(options.gradient_noise) +
         ", loss_noise: " + FormatNumber(options.loss_noise) + "}}";
}

std::string Text(const SyntheticData& synthetic) {
  const simulator::SyntheticOptions& training = synthetic.training;
  return "{samples: " + std::to_string(training.samples) +
         ", features: " + std::to_string(training.features) +
         ", classes: " + std::to_string(training.classes) +
         ", separation: " + FormatNumber(training.separation) +
         ", seed: " + std::to_string(training.seed) +
         ", validation_samples: " + std::to_string(synthetic.validation_samples) + "}";
}

std::string Text(const PerceptronLoss& loss) {
  std::string text = "{perceptron: {hidden: [" + JoinNumbers(loss.model.hidden) + "]";
  if (loss.synthetic) text += ", synthetic: " + Text(*loss.synthetic);
  return text + "}}";
}

std::string Text(const CurveLoss& loss) {
  return "{curve: {file: " + YamlScalar(loss.file) + (loss.noise ? ", noise: true" : "") + "}}";
}

}  // namespace

SimulatedWork ReadWork(YamlFields& file, const std::string& folder) {
  SimulatedWork work;
  if (std::optional<YamlFields> model = file.Map("model")) {
    model->Whole("parameters", {1, 1'000'000'000'000}, &work.parameters);
    model->Number("backward_share", kShare, &work.backward_share);
    model->Seconds("load_time", kLong, &work.load_seconds);
    model->Seconds("conclude_time", kLong, &work.conclude_seconds);
    model->Whole("train_samples", {1, std::uint64_t{1} << 50}, &work.train_samples);
    model->RefuseOthers();
  }
  work.loss = ReadLoss(file, folder);
  return work;
}

std::string WriteWork(const SimulatedWork& work) {
  std::string text = "model:\n";
  if (work.parameters > 0) text += Line("parameters", std::to_string(work.parameters));
  text += Line("backward_share", FormatNumber(work.backward_share));
  text += Line("load_time", FormatSeconds(work.load_seconds));
  text += Line("conclude_time", FormatSeconds(work.conclude_seconds));
  text += Line("train_samples", std::to_string(work.train_samples));
  return text + "loss: " + std::visit([](const auto& loss) { return Text(loss); }, work.loss) +
         "\n";
}

}  // namespace tactus::client
