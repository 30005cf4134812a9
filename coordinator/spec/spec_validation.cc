#include "coordinator/spec/spec_validation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/time.h"
#include "coordinator/spec/field_checks.h"
#include "policies/plan.h"

namespace tactus::spec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kBatchMax = 1u << 20;
constexpr std::uint64_t kWorkersMax = 1u << 16;
constexpr std::int64_t kStopSecondsMax = 10LL * 365 * 86400;

const Interval kPositive = {
    .low = 0, .low_included = false, .high = kInfinity, .high_included = false, .text = "above 0"};
const Interval kNotNegative = {
    .low = 0, .high = kInfinity, .high_included = false, .text = "0 or more"};
const Interval kBelowOne = {.low = 0, .high = 1, .high_included = false, .text = "0 to below 1"};
const Interval kFinite = {.low = -kInfinity, .high = kInfinity, .text = "a finite number"};

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
  checks.Add("name", "found \"" + name.substr(0, 80) +
                         "\", allowed are 1 to 63 of a-z, 0-9 and -, beginning with a letter");
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

void CheckLoss(const std::string& loss, FieldChecks& checks) {
  const bool path = loss.find('/') != std::string::npos || loss.find('.') != std::string::npos;
  if (loss.empty() || loss == kLosses[0] || loss == kLosses[1]) return;
  if (path) return checks.Path("model.loss", loss);
  const std::string nearest = Nearest(loss, kLosses);
  checks.Add("model.loss",
             "found \"" + loss.substr(0, 80) +
                 "\", allowed is cross_entropy, mse or the path of a TorchScript module" +
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
      checks.Path("model.torchscript", model.torchscript());
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
  if (!checks.Whole("data.context", data.context(), {1, kBatchMax})) return;
  if (spec.model().source_case() == v1::Model::kBuiltin) {
    checks.Add("data.context",
               "is for TorchScript models; a built-in one takes model.options.context");
  } else if (data.source_case() != v1::Data::kText &&
             data.source_case() != v1::Data::SOURCE_NOT_SET) {
    checks.Add("data.context", "applies to data.text only");
  }
}

// ---- optimizer

void CheckSgd(const v1::Sgd& sgd, FieldChecks& checks) {
  const std::string field = "optimizer.sgd.";
  if (sgd.has_learning_rate()) checks.Real(field + "learning_rate", sgd.learning_rate(), kPositive);
  if (sgd.has_momentum()) checks.Real(field + "momentum", sgd.momentum(), kBelowOne);
  if (sgd.has_weight_decay()) checks.Real(field + "weight_decay", sgd.weight_decay(), kNotNegative);
  if (sgd.nesterov() && sgd.momentum() == 0) {
    checks.Add(field + "nesterov",
               "found true without momentum; give optimizer.sgd.momentum above 0");
  }
}

void CheckAdam(const std::string& field, const v1::Adam& adam, FieldChecks& checks) {
  if (adam.has_learning_rate())
    checks.Real(field + "learning_rate", adam.learning_rate(), kPositive);
  if (adam.has_beta1()) checks.Real(field + "beta1", adam.beta1(), kBelowOne);
  if (adam.has_beta2()) checks.Real(field + "beta2", adam.beta2(), kBelowOne);
  if (adam.has_epsilon()) checks.Real(field + "epsilon", adam.epsilon(), kPositive);
  if (adam.has_weight_decay())
    checks.Real(field + "weight_decay", adam.weight_decay(), kNotNegative);
}

void CheckOptimizer(const v1::Optimizer& optimizer, FieldChecks& checks) {
  if (optimizer.has_sgd()) CheckSgd(optimizer.sgd(), checks);
  if (optimizer.has_adam()) CheckAdam("optimizer.adam.", optimizer.adam(), checks);
  if (optimizer.has_adamw()) CheckAdam("optimizer.adamw.", optimizer.adamw(), checks);
  if (optimizer.has_clip_norm())
    checks.Real("optimizer.clip_norm", optimizer.clip_norm(), kPositive);
}

// ---- stop, workers, adapt

void CheckTime(const google::protobuf::Duration& time, FieldChecks& checks) {
  const bool normal = time.nanos() >= 0 && time.nanos() < 1'000'000'000 && time.seconds() >= 0;
  const bool positive = time.seconds() > 0 || time.nanos() > 0;
  if (normal && positive && time.seconds() <= kStopSecondsMax) return;
  checks.Add("stop.time", "found " + std::to_string(time.seconds()) +
                              "s, allowed is a duration above 0 and of at most 10 years");
}

void CheckStop(const v1::Stop& stop, FieldChecks& checks) {
  if (!stop.has_train_loss() && !stop.has_epochs() && !stop.has_time() && !stop.has_rounds()) {
    return checks.Missing("stop", "give at least one of train_loss, epochs, time or rounds");
  }
  if (stop.has_train_loss()) checks.Real("stop.train_loss", stop.train_loss(), kFinite);
  if (stop.has_epochs()) {
    checks.Whole("stop.epochs", stop.epochs(), {1, std::numeric_limits<std::uint32_t>::max()});
  }
  if (stop.has_time()) CheckTime(stop.time(), checks);
  if (stop.has_rounds()) {
    checks.Whole("stop.rounds", stop.rounds(), {1, std::numeric_limits<std::int64_t>::max()});
  }
}

// An enum value that this version knows; 0 stands for the default.
void CheckEnum(const std::string& field, bool known, int value, const std::string& allowed,
               FieldChecks& checks) {
  if (known) return;
  checks.Add(field, "found the unknown value " + std::to_string(value) + ", allowed is " + allowed);
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
  CheckEnum("workers.device", v1::DeviceKind_IsValid(workers.device()), workers.device(),
            "cpu or cuda", checks);
}

void CheckBatch(const v1::BatchAxis& batch, FieldChecks& checks) {
  const std::string field = "adapt.batch.";
  const Bounds bounds = {1, kBatchMax};
  CheckEnum(field + "policy", v1::BatchPolicy_IsValid(batch.policy()), batch.policy(),
            "fixed or proportional", checks);
  bool right =
      !batch.has_per_worker() || checks.Whole(field + "per_worker", batch.per_worker(), bounds);
  right = (!batch.has_min() || checks.Whole(field + "min", batch.min(), bounds)) && right;
  right = (!batch.has_max() || checks.Whole(field + "max", batch.max(), bounds)) && right;
  if (batch.has_micro_batch()) checks.Whole(field + "micro_batch", batch.micro_batch(), bounds);
  if (!right) return;
  const std::uint64_t min = batch.has_min() ? batch.min() : 1;
  const std::uint64_t max = batch.has_max() ? batch.max() : kBatchMax;
  const std::uint64_t per_worker = batch.has_per_worker() ? batch.per_worker() : 32;
  if (max < min) {
    checks.Add(field + "max", "found " + std::to_string(max) + ", allowed is adapt.batch.min, " +
                                  std::to_string(min) + ", or more");
  } else {
    checks.Whole(field + "per_worker", per_worker, {min, max});
  }
}

void CheckAdapt(const v1::Adapt& adapt, FieldChecks& checks) {
  CheckBatch(adapt.batch(), checks);
  const auto synchronization = adapt.synchronization().policy();
  CheckEnum("adapt.synchronization.policy", v1::SynchronizationPolicy_IsValid(synchronization),
            synchronization, "every_step", checks);
  const auto aggregation = adapt.aggregation().policy();
  CheckEnum("adapt.aggregation.policy", v1::AggregationPolicy_IsValid(aggregation), aggregation,
            "average", checks);
  const auto learning_rate = adapt.learning_rate().policy();
  CheckEnum("adapt.learning_rate.policy", v1::LearningRatePolicy_IsValid(learning_rate),
            learning_rate, "constant", checks);
}

job::DeviceKind DeviceOf(v1::DeviceKind kind) {
  if (kind == v1::DEVICE_KIND_CPU) return job::DeviceKind::kCpu;
  return kind == v1::DEVICE_KIND_CUDA ? job::DeviceKind::kCuda : job::DeviceKind::kAny;
}

// Workers that a job may have without a round exceeding the samples that the lanes can count.
std::uint32_t WorkersOfARound(std::uint32_t per_worker) {
  return static_cast<std::uint32_t>(policies::kRoundSamplesMax / std::max(1u, per_worker));
}

void CheckRound(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::BatchAxis& batch = spec.adapt().batch();
  const std::uint32_t most = WorkersOfARound(batch.has_per_worker() ? batch.per_worker() : 32);
  if (spec.workers().min() <= most) return;
  checks.Add("workers.min", "found " + std::to_string(spec.workers().min()) +
                                ", allowed with this "
                                "adapt.batch.per_worker is at most " +
                                std::to_string(most) + ": a round has at most 16777216 samples");
}

}  // namespace

std::vector<runtime::FieldViolation> SpecViolations(const v1::JobSpec& spec) {
  FieldChecks checks;
  CheckName(spec.name(), checks);
  CheckModel(spec, checks);
  CheckData(spec, checks);
  CheckOptimizer(spec.optimizer(), checks);
  CheckStop(spec.stop(), checks);
  CheckWorkers(spec.workers(), checks);
  CheckAdapt(spec.adapt(), checks);
  CheckRound(spec, checks);
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
  const v1::BatchAxis& batch = spec.adapt().batch();
  settings.batch_policy = batch.policy() == v1::BATCH_POLICY_FIXED ? "fixed" : "proportional";
  if (batch.has_per_worker()) settings.batch_per_worker = batch.per_worker();
  if (batch.has_min()) settings.batch_min = batch.min();
  if (batch.has_max()) settings.batch_max = batch.max();
  settings.workers_max = std::min(settings.workers_max, WorkersOfARound(settings.batch_per_worker));
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
