#include "coordinator/spec/spec_validation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "base/time.h"
#include "coordinator/spec/adapt_checks.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/optimizer_checks.h"

namespace tactus::spec {
namespace {

constexpr std::uint64_t kContextMax = 1u << 20;
constexpr std::uint64_t kWorkersMax = 1u << 16;
constexpr std::size_t kSpecBytesMax = 256 << 10;
constexpr std::size_t kSelectorMax = 16;
constexpr int kPriorityMax = 1000;
constexpr char kBlobPrefix[] = "sha256:";
const std::string kBlobAllowed = "allowed is sha256: and 64 hexadecimal digits in lower case";
const std::string kLabelAllowed =
    "allowed are keys of 1 to 63 and values of 0 to 63 letters, digits, \".\", \"_\", \"-\" (in "
    "keys "
    "also \"/\"), with a letter or digit at both ends";

const std::vector<std::string> kBuiltins = {"bytes-lm", "cifar-cnn", "resnet18"};
const std::vector<std::string> kLosses = {"cross_entropy", "mse"};

bool IsText(const v1::Model& model) { return model.builtin() == "bytes-lm"; }
bool IsImages(const v1::Model& model) {
  return model.builtin() == "cifar-cnn" || model.builtin() == "resnet18";
}

void CheckName(const std::string& name, FieldChecks& checks) {
  if (name.empty()) return checks.Missing("name", "give 1 to 63 of a-z, 0-9 and -");
  bool right = name.size() <= 63 && name[0] >= 'a' && name[0] <= 'z';
  for (const char c : name) {
    right = right && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
  if (right) return;
  checks.Add("name", "found " + Shown(name) +
                         ", allowed are 1 to 63 of a-z, 0-9 and -, beginning with a letter");
}

// ---- model

// One size of a built-in model: `bounds` unset means that the model has no such size.
void CheckSize(const std::string& name, std::optional<std::uint32_t> value,
               const std::optional<Bounds>& bounds, const v1::Model& model, FieldChecks& checks) {
  if (!value.has_value()) return;
  const std::string field = "model.options." + name;
  if (bounds.has_value()) {
    checks.Whole(field, *value, *bounds);
  } else {
    checks.Add(field, "does not apply to " + model.builtin());
  }
}

void CheckHeads(const v1::BuiltinOptions& options, FieldChecks& checks) {
  const std::uint32_t width = options.has_width() ? options.width() : 128;
  const std::uint32_t heads = options.has_heads() ? options.heads() : 4;
  if (heads == 0 || width % heads == 0) return;
  checks.Add("model.options.width", "found " + std::to_string(width) +
                                        ", allowed is a multiple of heads, " +
                                        std::to_string(heads));
}

void CheckSizes(const v1::Model& model, FieldChecks& checks) {
  const v1::BuiltinOptions& options = model.options();
  const bool text = IsText(model);
  using Size = std::optional<std::uint32_t>;
  using Limit = std::optional<Bounds>;
  const auto check = [&](const char* name, bool set, std::uint32_t value, const Limit& limit) {
    CheckSize(name, set ? Size(value) : std::nullopt, limit, model, checks);
  };
  const auto only = [](bool has, Bounds bounds) { return has ? Limit(bounds) : std::nullopt; };
  check("width", options.has_width(), options.width(), text ? Bounds{8, 4096} : Bounds{4, 512});
  check("heads", options.has_heads(), options.heads(), only(text, {1, 64}));
  check("layers", options.has_layers(), options.layers(), only(text, {1, 64}));
  check("context", options.has_context(), options.context(), only(text, {8, 4096}));
  check("classes", options.has_classes(), options.classes(), only(!text, {2, 65536}));
  check("channels", options.has_channels(), options.channels(), only(!text, {1, 16}));
  if (text) CheckHeads(options, checks);
}

// A path, or the hash of a file that was uploaded.
void CheckFile(const std::string& field, const std::string& file, FieldChecks& checks) {
  if (!file.starts_with(kBlobPrefix)) return checks.Path(field, file);
  if (!NamesBlob(file)) checks.Add(field, "found " + Shown(file) + ", " + kBlobAllowed);
}

void CheckLoss(const std::string& loss, FieldChecks& checks) {
  if (loss.starts_with(kBlobPrefix)) return CheckFile("model.loss", loss, checks);
  const bool path = loss.find('/') != std::string::npos || loss.find('.') != std::string::npos;
  if (loss.empty() || loss == kLosses[0] || loss == kLosses[1]) return;
  if (path) return checks.Path("model.loss", loss);
  const std::string nearest = Nearest(loss, kLosses);
  checks.Add("model.loss",
             "found " + Shown(loss) +
                 ", allowed is cross_entropy, mse or the path of a TorchScript module" +
                 (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

void CheckModel(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Model& model = spec.model();
  switch (model.source_case()) {
    case v1::Model::kBuiltin: {
      checks.OneOf("model.builtin", model.builtin(), kBuiltins);
      if (IsText(model) || IsImages(model)) CheckSizes(model, checks);
      break;
    }
    case v1::Model::kTorchscript:
      CheckFile("model.torchscript", model.torchscript(), checks);
      if (model.has_options()) {
        checks.Add("model.options",
                   "applies to built-in models only, and model.torchscript is given");
      }
      break;
    case v1::Model::SOURCE_NOT_SET:
      checks.Missing("model",
                     "give builtin (" + Enumerate(kBuiltins) + ") or torchscript (a path)");
      break;
  }
  CheckLoss(model.loss(), checks);
  checks.Known("model.precision", v1::Precision_IsValid(model.precision()), model.precision(),
               {"float32", "bfloat16"});
  if (model.source_case() == v1::Model::kBuiltin && model.loss() == "mse") {
    checks.Add("model.loss",
               "found \"mse\", allowed with model.builtin is cross_entropy: built-in models "
               "give logits");
  }
}

// ---- data

void CheckPair(const std::string& field, const v1::FilePair& pair, FieldChecks& checks) {
  checks.Path(field + ".inputs", pair.inputs());
  checks.Path(field + ".targets", pair.targets());
}

void CheckSource(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  const std::string unfit =
      "does not fit model.builtin " + spec.model().builtin() + ", which takes ";
  switch (data.source_case()) {
    case v1::Data::kText:
      checks.Path("data.text", data.text());
      if (IsImages(spec.model())) checks.Add("data.text", unfit + "images: cifar, idx or numpy");
      break;
    case v1::Data::kCifar:
      checks.Path("data.cifar", data.cifar());
      if (IsText(spec.model())) checks.Add("data.cifar", unfit + "bytes: text or numpy");
      break;
    case v1::Data::kIdx:
      CheckPair("data.idx", data.idx(), checks);
      if (IsText(spec.model())) checks.Add("data.idx", unfit + "bytes: text or numpy");
      break;
    case v1::Data::kNumpy:
      CheckPair("data.numpy", data.numpy(), checks);
      break;
    case v1::Data::SOURCE_NOT_SET:
      checks.Missing("data", "give one of text, cifar, idx or numpy");
      break;
  }
}

void CheckData(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  CheckSource(spec, checks);
  if (data.has_validation_fraction()) {
    checks.Real("data.validation_fraction", data.validation_fraction(),
                {.low = 0, .high = 0.9, .text = "0 to 0.9"});
  }
  if (!data.has_context()) return;
  if (!checks.Whole("data.context", data.context(), {1, kContextMax})) return;
  if (spec.model().source_case() == v1::Model::kBuiltin) {
    checks.Add("data.context",
               "is for TorchScript models; a built-in one takes model.options.context");
  } else if (data.source_case() != v1::Data::kText &&
             data.source_case() != v1::Data::SOURCE_NOT_SET) {
    checks.Add("data.context", "applies to data.text only");
  }
}

// ---- stop, workers

void CheckStop(const v1::Stop& stop, FieldChecks& checks) {
  if (!stop.has_train_loss() && !stop.has_epochs() && !stop.has_time() && !stop.has_rounds() &&
      !stop.has_steps()) {
    return checks.Missing("stop", "give at least one of train_loss, epochs, time, rounds or steps");
  }
  if (stop.has_train_loss()) checks.Real("stop.train_loss", stop.train_loss(), kFinite);
  if (stop.has_epochs()) {
    checks.Whole("stop.epochs", stop.epochs(), {1, std::numeric_limits<std::uint32_t>::max()});
  }
  if (stop.has_time()) checks.Time("stop.time", stop.time());
  if (stop.has_rounds()) {
    checks.Whole("stop.rounds", stop.rounds(), {1, std::numeric_limits<std::int64_t>::max()});
  }
  if (stop.has_steps()) checks.Real("stop.steps", stop.steps(), kPositive);
}

void CheckCount(const std::string& field, std::size_t count, FieldChecks& checks) {
  if (count <= kSelectorMax) return;
  checks.Add(field,
             "found " + std::to_string(count) + ", allowed are " + std::to_string(kSelectorMax));
}

// On which nodes.
void CheckPlacement(const v1::Workers& workers, FieldChecks& checks) {
  CheckCount("workers.selector", workers.selector().size(), checks);
  const std::map<std::string, std::string> selector(workers.selector().begin(),
                                                    workers.selector().end());
  for (const auto& [key, value] : selector) {
    if (IsLabelKey(key) && IsLabelValue(value)) continue;
    checks.Add("workers.selector", "found " + Shown(key + "=" + value) + ", " + kLabelAllowed);
    break;
  }
  CheckCount("workers.tolerations", static_cast<std::size_t>(workers.tolerations_size()), checks);
  for (const std::string& taint : workers.tolerations()) {
    const std::size_t equals = std::min(taint.find('='), taint.size());
    const std::string value = equals < taint.size() ? taint.substr(equals + 1) : "";
    if (IsLabelKey(taint.substr(0, equals)) && IsLabelValue(value)) continue;
    checks.Add("workers.tolerations",
               "found " + Shown(taint) + ", allowed is key or key=value; " + kLabelAllowed);
    break;
  }
}

void CheckWorkers(const v1::Workers& workers, FieldChecks& checks) {
  const bool min_right =
      !workers.has_min() || checks.Whole("workers.min", workers.min(), {1, kWorkersMax});
  const bool max_right =
      !workers.has_max() || checks.Whole("workers.max", workers.max(), {1, kWorkersMax});
  const std::uint32_t min = workers.has_min() ? workers.min() : 1;
  if (min_right && max_right && workers.has_max() && workers.max() < min) {
    checks.Add("workers.max", "found " + std::to_string(workers.max()) +
                                  ", allowed is workers.min, " + std::to_string(min) + ", or more");
  }
  checks.Known("workers.device", v1::DeviceKind_IsValid(workers.device()), workers.device(),
               {"cpu", "cuda"});
  CheckPlacement(workers, checks);
}

void CheckPriority(const v1::JobSpec& spec, FieldChecks& checks) {
  if (spec.priority() >= -kPriorityMax && spec.priority() <= kPriorityMax) return;
  checks.Add("priority", "found " + std::to_string(spec.priority()) + ", allowed is -1000 to 1000");
}

void CheckSnapshots(const v1::JobSpec& spec, FieldChecks& checks) {
  if (!spec.has_snapshots()) return;
  const google::protobuf::Duration& every = spec.snapshots().every();
  if (!spec.snapshots().has_every()) return checks.Missing("snapshots.every", "give 1s or more");
  if (every.seconds() == 0 && every.nanos() > 0) {
    return checks.Add("snapshots.every", "found less than a second, allowed is 1s or more");
  }
  checks.Time("snapshots.every", every);
}

job::DeviceKind DeviceOf(v1::DeviceKind kind) {
  if (kind == v1::DEVICE_KIND_CPU) return job::DeviceKind::kCpu;
  return kind == v1::DEVICE_KIND_CUDA ? job::DeviceKind::kCuda : job::DeviceKind::kAny;
}

}  // namespace

std::vector<runtime::FieldViolation> SpecViolations(const v1::JobSpec& spec) {
  FieldChecks checks;
  if (spec.ByteSizeLong() > kSpecBytesMax) {
    checks.Add("spec", "found " + std::to_string(spec.ByteSizeLong()) + " bytes, allowed are " +
                           std::to_string(kSpecBytesMax));
    return checks.violations();
  }
  CheckName(spec.name(), checks);
  CheckModel(spec, checks);
  CheckData(spec, checks);
  CheckOptimizer(spec.optimizer(), checks);
  CheckStop(spec.stop(), checks);
  CheckWorkers(spec.workers(), checks);
  CheckAdapt(spec, checks);
  CheckSnapshots(spec, checks);
  CheckPriority(spec, checks);
  return checks.violations();
}

absl::StatusOr<job::JobSettings> ParseSpec(const v1::JobSpec& spec) {
  const std::vector<runtime::FieldViolation> violations = SpecViolations(spec);
  if (!violations.empty()) return runtime::InvalidFields(violations);
  job::JobSettings settings;
  settings.name = spec.name();
  if (spec.workers().has_min()) settings.workers_min = spec.workers().min();
  if (spec.workers().has_max()) settings.workers_max = spec.workers().max();
  settings.device = DeviceOf(spec.workers().device());
  settings.selector = {spec.workers().selector().begin(), spec.workers().selector().end()};
  settings.tolerations = {spec.workers().tolerations().begin(), spec.workers().tolerations().end()};
  settings.priority = spec.priority();
  settings.adapt = PlannerOptionsOf(spec);
  settings.workers_max = std::min(settings.workers_max, WorkersOfARound(settings.adapt));
  const v1::Stop& stop = spec.stop();
  if (stop.has_train_loss()) settings.stop_train_loss = stop.train_loss();
  if (stop.has_epochs()) settings.stop_epochs = stop.epochs();
  if (stop.has_rounds()) settings.stop_rounds = stop.rounds();
  if (stop.has_time()) {
    settings.stop_time =
        std::chrono::seconds(stop.time().seconds()) + Duration(stop.time().nanos());
  }
  return settings;
}

}  // namespace tactus::spec
