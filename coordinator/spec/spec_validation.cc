#include "coordinator/spec/spec_validation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/time.h"
#include "coordinator/spec/adapt_checks.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/kind_of_job.h"
#include "coordinator/spec/mesh_checks.h"
#include "coordinator/spec/resolve.h"
#include "coordinator/spec/shape_of_job.h"
#include "policies/axes.h"
#include "policies/catalogue.h"
#include "protocol/node_labels.h"
#include "runtime/job_files.h"
#include "runtime/options.h"

namespace tactus::spec {
namespace {

constexpr std::size_t kSpecBytesMax = 256 << 10;
constexpr std::size_t kSelectorMax = 16;
const std::string kBlobAllowed = "allowed is sha256: and 64 hexadecimal digits in lower case";
const std::string kLabelAllowed =
    "allowed are keys of 1 to 63 and values of 0 to 63 letters, digits, \".\", \"_\", \"-\" (in "
    "keys "
    "also \"/\"), with a letter or digit at both ends";

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

void CheckBuiltin(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const std::vector<std::string> known = VariantsOf(*v1::BuiltinOptions::descriptor());
  const std::string& builtin = spec.model().builtin();
  checks.OneOf("model.builtin", builtin, known);
  if (!checks.Right("model.builtin")) return;
  CheckFields(spec.model().options(), "model.options.", builtin, checks);
  const v1::BuiltinOptions& sizes = resolved->model().options();
  if (!sizes.has_heads() || !checks.Right("model.options.heads")) return;
  if (sizes.width() % sizes.heads() == 0) return;
  checks.Add("model.options.width", "found " + std::to_string(sizes.width()) +
                                        ", allowed is a multiple of heads, " +
                                        std::to_string(sizes.heads()));
}

// A path, or the hash of a file that was uploaded.
void CheckFile(const std::string& field, const std::string& file, FieldChecks& checks) {
  if (!file.starts_with(runtime::kUploaded)) return checks.Path(field, file);
  if (!NamesBlob(file)) checks.Add(field, "found " + Shown(file) + ", " + kBlobAllowed);
}

void CheckLoss(const std::string& loss, FieldChecks& checks) {
  if (loss.empty() || loss == kLosses[0] || loss == kLosses[1]) return;
  if (runtime::IsFile(loss)) return CheckFile("model.loss", loss, checks);
  const std::string nearest = Nearest(loss, kLosses);
  checks.Add("model.loss",
             "found " + Shown(loss) +
                 ", allowed is cross_entropy, mse or the path of a TorchScript module" +
                 (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

void CheckModel(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const v1::Model& model = spec.model();
  switch (model.source_case()) {
    case v1::Model::kBuiltin:
      CheckBuiltin(spec, resolved, checks);
      break;
    case v1::Model::kTorchscript:
      CheckFile("model.torchscript", model.torchscript(), checks);
      if (model.has_options()) {
        checks.Add("model.options",
                   "applies to built-in models only, and model.torchscript is given");
      }
      break;
    case v1::Model::SOURCE_NOT_SET:
      checks.Missing("model",
                     "give builtin (" + Enumerate(VariantsOf(*v1::BuiltinOptions::descriptor())) +
                         ") or torchscript (a path); or program, in place of model and data");
      break;
  }
  CheckLoss(model.loss(), checks);
  if (!model.weights().empty()) CheckFile("model.weights", model.weights(), checks);
  if (!model.output().empty() && model.source_case() == v1::Model::kBuiltin) {
    checks.Add("model.output", "applies to TorchScript models; a built-in one gives one tensor");
  }
  if (model.source_case() == v1::Model::kBuiltin && model.loss() == "mse") {
    checks.Add("model.loss",
               "found \"mse\", allowed with model.builtin is cross_entropy: built-in models "
               "give logits");
  }
}

// ---- data

void CheckPair(const std::string& field, const v1::FilePair& pair, FieldChecks& checks) {
  CheckFile(field + ".inputs", pair.inputs(), checks);
  CheckFile(field + ".targets", pair.targets(), checks);
  for (int i = 0; i < pair.more_inputs_size(); ++i) {
    CheckFile(fmt::format("{}.more_inputs[{}]", field, i), pair.more_inputs(i), checks);
  }
  for (int i = 0; i < pair.input_types_size(); ++i) {
    checks.OneOf(fmt::format("{}.input_types[{}]", field, i), pair.input_types(i),
                 {"float32", "scaled", "int64", "uint8", "bool"});
  }
  const int inputs = 1 + pair.more_inputs_size();
  const int types = pair.input_types_size();
  if (types > 0 && types != inputs && checks.Right(field + ".input_types")) {
    checks.Add(field + ".input_types", fmt::format("found {} for {} input{}, allowed is one each",
                                                   types, inputs, inputs == 1 ? "" : "s"));
  }
}

// IDX has one input, whose type says what it becomes; built-in models have one, too.
void CheckOneInput(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  if (data.idx().more_inputs_size() > 0) {
    checks.Add("data.idx.more_inputs", "applies to data.numpy only");
  }
  if (data.idx().input_types_size() > 0) {
    checks.Add("data.idx.input_types", "applies to data.numpy only");
  }
  const bool builtin = spec.model().source_case() == v1::Model::kBuiltin;
  if (builtin && data.numpy().more_inputs_size() > 0) {
    checks.Add("data.numpy.more_inputs",
               "applies to TorchScript models; a built-in one has one input");
  }
}

void CheckImages(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  if (!data.has_images()) return;
  if (data.source_case() == v1::Data::kText) {
    checks.Add("data.images", "applies to images: cifar, idx or numpy, and data.text is given");
  }
  for (const double mean : data.images().mean()) {
    if (std::isfinite(mean)) continue;
    checks.Add("data.images.mean", fmt::format("found {}, allowed are finite numbers", mean));
    break;
  }
  for (const double deviation : data.images().deviation()) {
    if (std::isfinite(deviation) && deviation > 0) continue;
    checks.Add("data.images.deviation", fmt::format("found {}, allowed is above 0", deviation));
    break;
  }
  const bool scales = data.images().mean_size() > 0 || data.images().deviation_size() > 0;
  if (scales && data.source_case() == v1::Data::kCifar) {
    checks.Add(data.images().mean_size() > 0 ? "data.images.mean" : "data.images.deviation",
               "does not apply to data.cifar, whose images are standardised already; allowed are "
               "crop and flip");
  }
}

void CheckSource(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  const std::string unfit =
      "does not fit model.builtin " + spec.model().builtin() + ", which takes ";
  switch (data.source_case()) {
    case v1::Data::kText:
      CheckFile("data.text", data.text(), checks);
      if (IsImages(spec.model())) checks.Add("data.text", unfit + "images: cifar, idx or numpy");
      break;
    case v1::Data::kCifar:
      CheckFile("data.cifar", data.cifar(), checks);
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

// What a weighted subset does not go with, with the reason.
void CheckCraig(const v1::JobSpec& spec, FieldChecks& checks) {
  if (spec.adapt().encoding().policy() == v1::ENCODING_POLICY_ONE_BIT) {
    checks.Add("data.subset.craig",
               "does not go with adapt.encoding one_bit: a choice changes the gradients under its "
               "frozen second moment; allowed are other encodings, or data.subset.random");
  }
  const std::string synchronization =
      WordOf(*v1::SynchronizationPolicy_descriptor(), spec.adapt().synchronization().policy());
  if (policies::HasTrait(policies::Axis::kSynchronization, synchronization,
                         policies::Trait::kOwnParameters)) {
    checks.Add("data.subset.craig",
               "does not go with adapt.synchronization " + synchronization +
                   ": workers choose by gradients at parameters that all have; allowed are other "
                   "synchronizations, or data.subset.random");
  }
  if (spec.data().subset().craig().proxy() == v1::SUBSET_PROXY_INPUTS &&
      spec.data().source_case() == v1::Data::kText) {
    checks.Add("data.subset.craig.proxy",
               "found inputs, and data.text has bytes; allowed is gradients");
  }
}

void CheckSubset(const v1::JobSpec& spec, FieldChecks& checks) {
  if (!spec.data().has_subset()) return;
  if (spec.data().subset().kind_case() == v1::Subset::KIND_NOT_SET) {
    return checks.Missing("data.subset", "give random or craig");
  }
  if (spec.data().subset().has_craig()) CheckCraig(spec, checks);
}

void CheckData(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Data& data = spec.data();
  CheckSubset(spec, checks);
  CheckSource(spec, checks);
  CheckOneInput(spec, checks);
  CheckImages(spec, checks);
  if (!data.has_context() || !checks.Right("data.context")) return;
  if (spec.model().source_case() == v1::Model::kBuiltin) {
    checks.Add("data.context",
               "is for TorchScript models; a built-in one takes model.options.context");
  } else if (data.source_case() != v1::Data::kText &&
             data.source_case() != v1::Data::SOURCE_NOT_SET) {
    checks.Add("data.context", "applies to data.text only");
  }
}

// ---- program

constexpr int kArgumentsMax = 256;

// Fields that would have no effect, as the program says what they say.
void CheckOwn(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Adapt& adapt = spec.adapt();
  const v1::Stop& stop = spec.stop();
  const std::pair<bool, const char*> of_program[] = {
      {spec.has_model(), "model"},
      {spec.has_data(), "data"},
      {spec.has_optimizer(), "optimizer"},
      {spec.has_seed(), "seed"},
      {stop.has_validation_loss(), "stop.validation_loss"},
      {stop.has_patience(), "stop.patience"},
      {adapt.batch().has_per_worker(), "adapt.batch.per_worker"},
      {adapt.batch().has_micro_batch(), "adapt.batch.micro_batch"},
      {adapt.learning_rate().has_base_batch(), "adapt.learning_rate.base_batch"},
      {adapt.learning_rate().has_schedule(), "adapt.learning_rate.schedule"},
      {spec.has_validation(), "validation"},
      {spec.result() == v1::RESULT_CHOICE_BEST, "result"}};
  for (const auto& [given, field] : of_program) {
    if (given) checks.Add(field, "is the program's to say, and program is given; leave it out");
  }
}

// Of the folder that its files are put into.
bool IsNameWithin(const std::string& name) {
  if (name.empty() || name.size() > 1024 || !IsPrintable(name) || name.front() == '/') return false;
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  return std::ranges::none_of(
      parts, [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

void CheckFilesOf(const v1::Program& program, FieldChecks& checks) {
  if (program.files().empty()) {
    if (!program.directory().empty()) return checks.Path("program.directory", program.directory());
    return checks.Missing("program.directory",
                          "give the folder in which it runs on every node, or files");
  }
  if (!program.directory().empty()) {
    checks.Add("program.directory",
               "found " + Shown(program.directory()) +
                   ", allowed with files is none: it runs in a folder of the job's own");
  }
  for (int i = 0; i < program.files_size(); ++i) {
    CheckFile("program.files[" + std::to_string(i) + "]", program.files(i), checks);
  }
  if (program.names_size() != program.files_size()) {
    checks.Add("program.names", "found " + std::to_string(program.names_size()) +
                                    " of them, allowed is one for each of " +
                                    std::to_string(program.files_size()) + " files");
  }
  std::set<std::string> seen;
  for (const std::string& name : program.names()) {
    if (IsNameWithin(name) && seen.insert(name).second) continue;
    checks.Add("program.names", "found " + Shown(name) +
                                    ", allowed are distinct paths below the folder in which "
                                    "it runs, such as train.py or parts/model.py");
    break;
  }
}

void CheckProgram(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Program& program = spec.program();
  if (program.command().empty() || program.command(0).empty()) {
    checks.Missing("program.command", "give it and its arguments, such as [python3, train.py]");
  } else if (program.command_size() > kArgumentsMax) {
    checks.Add("program.command", "found " + std::to_string(program.command_size()) +
                                      " words, allowed are 1 to " + std::to_string(kArgumentsMax));
  }
  for (const std::string& word : program.command()) {
    if (word.find('\0') == std::string::npos && word.size() <= 4096) continue;
    checks.Add("program.command",
               "found " + Shown(word) + ", allowed are words of up to 4096 bytes, without a zero");
    break;
  }
  CheckFilesOf(program, checks);
  CheckOwn(spec, checks);
}

// ---- optimizer, stop, workers

void CheckOptimizer(const v1::Optimizer& optimizer, FieldChecks& checks) {
  if (optimizer.sgd().nesterov() && optimizer.sgd().momentum() == 0) {
    checks.Add("optimizer.sgd.nesterov",
               "found true without momentum; give optimizer.sgd.momentum above 0");
  }
  const bool sharded = optimizer.shard() > v1::SHARD_NONE;
  if (sharded && optimizer.has_lamb()) {
    checks.Add("optimizer.shard",
               "found " + WordOf(*v1::Shard_descriptor(), optimizer.shard()) +
                   " with lamb, whose steps go by the norms of whole layers, of which a worker "
                   "would hold a part; take adam, adamw, lion or sgd, or shard: none");
  }
  if (!sharded && optimizer.shard_copies() > 1 && checks.Right("optimizer.shard_copies")) {
    checks.Add("optimizer.shard_copies",
               "found 2 without optimizer.shard, where every worker holds all of the state; give "
               "optimizer.shard: memory or equal, or leave it out");
  }
  const std::string field = "optimizer.lamb.ratio_";
  if (!optimizer.has_lamb() || !checks.Right(field + "min")) return;
  checks.Real(field + "max", optimizer.lamb().ratio_max(),
              {.low = optimizer.lamb().ratio_min(),
               .high = kInfinity,
               .high_included = false,
               .text = "a finite number of at least optimizer.lamb.ratio_min"});
}

void CheckStop(const v1::Stop& stop, FieldChecks& checks) {
  if (!stop.has_train_loss() && !stop.has_epochs() && !stop.has_time() && !stop.has_rounds() &&
      !stop.has_steps() && !stop.has_validation_loss() && !stop.has_patience()) {
    checks.Missing("stop",
                   "give at least one of train_loss, epochs, time, rounds, steps, validation_loss "
                   "or patience");
  }
}

// ---- validation

// The fields that ask for validation while the job trains, with what they say.
std::vector<std::pair<std::string, std::string>> AskingForValidation(const v1::JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> asking;
  const v1::Validation& validation = spec.validation();
  if (validation.has_every()) {
    // It may be one that is refused as it is.
    const google::protobuf::Duration& every = validation.every();
    const double seconds = static_cast<double>(every.seconds()) + 1e-9 * every.nanos();
    asking.emplace_back("validation.every", fmt::format("{}s", seconds));
  }
  if (validation.has_epochs()) {
    asking.emplace_back("validation.epochs", std::to_string(validation.epochs()));
  }
  if (validation.has_rounds()) {
    asking.emplace_back("validation.rounds", std::to_string(validation.rounds()));
  }
  if (spec.stop().has_validation_loss()) {
    asking.emplace_back("stop.validation_loss", fmt::format("{}", spec.stop().validation_loss()));
  }
  if (spec.stop().has_patience()) {
    asking.emplace_back("stop.patience", std::to_string(spec.stop().patience()));
  }
  if (spec.result() == v1::RESULT_CHOICE_BEST) asking.emplace_back("result", "best");
  return asking;
}

// Why nothing can be validated, as far as the job file says it; empty: it may well be.
std::string WhyNotValidated(const ResolvedSpec& spec) {
  const v1::Data& data = spec->data();
  if (spec->validation().policy() == v1::VALIDATION_POLICY_NONE) return "validation is none";
  if (data.validation_samples_max() == 0) return "data.validation_samples_max is 0";
  // A folder's test batch is not seen from here.
  const bool kept = data.validation_fraction() > 0 || data.has_cifar();
  return kept ? "" : "data.validation_fraction is 0, so that there is no validation data";
}

void CheckValidation(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const std::string why = WhyNotValidated(resolved);
  for (const auto& [field, found] : AskingForValidation(spec)) {
    if (why.empty() || !checks.Right(field)) continue;
    checks.Add(field, "found " + found + ", allowed is to leave it out, as " + why);
  }
  const v1::Validation& validation = spec.validation();
  const v1::Data& data = spec.data();
  if (!validation.has_samples() || !data.has_validation_samples_max()) return;
  if (validation.samples() == data.validation_samples_max()) return;
  checks.Add("validation.samples",
             "found " + std::to_string(validation.samples()) + ", allowed is " +
                 std::to_string(data.validation_samples_max()) +
                 ", as data.validation_samples_max says the same; give one of the two");
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
  if (checks.Right("workers.min") && checks.Right("workers.max") && workers.max() < workers.min()) {
    checks.Add("workers.max", "found " + std::to_string(workers.max()) +
                                  ", allowed is workers.min, " + std::to_string(workers.min()) +
                                  ", or more");
  }
  CheckPlacement(workers, checks);
}

Duration DurationOf(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + Duration(duration.nanos());
}

void CheckSnapshots(const v1::JobSpec& spec, FieldChecks& checks) {
  if (!spec.has_snapshots()) return;
  const google::protobuf::Duration& every = spec.snapshots().every();
  if (!spec.snapshots().has_every()) return checks.Missing("snapshots.every", "give 1s or more");
  if (every.seconds() == 0 && every.nanos() > 0) {
    checks.Add("snapshots.every",
               "found " + runtime::FormatDuration(DurationOf(every)) + ", allowed is 1s or more");
  }
}

// Where the fields of a path stand in their messages, outermost first; what is not a field ends it.
std::vector<int> PlaceOf(const std::string& path) {
  std::vector<int> place;
  const google::protobuf::Descriptor* message = v1::JobSpec::descriptor();
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    const google::protobuf::FieldDescriptor* field =
        message == nullptr ? nullptr : message->FindFieldByName(part.substr(0, part.find('[')));
    if (field == nullptr) break;
    place.push_back(field->index());
    message = field->message_type();
  }
  return place;
}

std::vector<runtime::FieldViolation> InOrder(std::vector<runtime::FieldViolation> violations) {
  std::ranges::stable_sort(violations, {}, [](const runtime::FieldViolation& violation) {
    return PlaceOf(violation.field);
  });
  return violations;
}

job::DeviceKind DeviceOf(v1::DeviceKind kind) {
  if (kind == v1::DEVICE_KIND_CPU) return job::DeviceKind::kCpu;
  if (kind == v1::DEVICE_KIND_CUDA) return job::DeviceKind::kCuda;
  return kind == v1::DEVICE_KIND_ANY ? job::DeviceKind::kAny : job::DeviceKind::kStandard;
}

}  // namespace

std::vector<runtime::FieldViolation> SpecViolations(const v1::JobSpec& spec) {
  FieldChecks checks;
  if (spec.ByteSizeLong() > kSpecBytesMax) {
    checks.Add("spec", "found " + std::to_string(spec.ByteSizeLong()) + " bytes, allowed are " +
                           std::to_string(kSpecBytesMax));
    return checks.violations();
  }
  const ResolvedSpec resolved = Resolve(spec);
  CheckFields(spec, "", "", checks);
  CheckName(spec.name(), checks);
  if (spec.has_program()) {
    CheckProgram(spec, checks);
  } else {
    CheckModel(spec, resolved, checks);
    CheckData(spec, checks);
    CheckOptimizer(resolved->optimizer(), checks);
    CheckStop(spec.stop(), checks);
    CheckValidation(spec, resolved, checks);
    CheckMesh(spec, resolved, checks);
  }
  CheckWorkers(resolved->workers(), checks);
  CheckAdapt(spec, resolved, checks);
  CheckSnapshots(spec, checks);
  return InOrder(checks.violations());
}

void CheckNodesPaths(const v1::JobSpec& spec, FieldChecks& checks) {
  const std::string& folder = spec.program().directory();
  if (!folder.empty() && folder.front() != '/') {
    checks.Add("program.directory",
               "found " + Shown(folder) + ", allowed is an absolute path, which every node has");
  }
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    if (file.empty() || file.front() == '/' || file.starts_with(runtime::kUploaded)) continue;
    checks.Add(field, "found " + Shown(file) +
                          ", allowed is an absolute path: each node would look for it in a folder "
                          "of its own");
  }
}

absl::StatusOr<job::JobSettings> ParseSpec(const v1::JobSpec& spec) {
  const std::vector<runtime::FieldViolation> violations = SpecViolations(spec);
  if (!violations.empty()) return runtime::InvalidFields(violations);
  return SettingsOf(Resolve(spec));
}

job::JobSettings SettingsOf(const ResolvedSpec& resolved) {
  const v1::JobSpec& spec = *resolved;
  job::JobSettings settings;
  settings.name = spec.name();
  settings.program = spec.has_program();
  settings.mesh_devices = DevicesOfReplica(spec);
  settings.mesh = MeshWords(resolved);
  settings.device = DeviceOf(spec.workers().device());
  // Parts have been on GPUs of doubles alone so far: who wants them there says so.
  const bool in_parts = settings.mesh_devices > 1 || spec.model().options().recompute();
  const bool on_host = in_parts && settings.device == job::DeviceKind::kStandard;
  if (settings.program || on_host) settings.device = job::DeviceKind::kCpu;
  settings.selector = {spec.workers().selector().begin(), spec.workers().selector().end()};
  if (settings.program) settings.selector[protocol::kProgramsLabel] = "true";
  settings.tolerations = {spec.workers().tolerations().begin(), spec.workers().tolerations().end()};
  settings.encrypted = spec.network().encryption() == v1::ENCRYPTION_TLS;
  settings.priority = spec.priority();
  settings.retries = spec.retries();
  settings.checkpoints_kept = spec.checkpoints().keep();
  settings.hold = DurationOf(spec.hold());
  settings.adapt = PlannerOptionsOf(resolved);
  if (spec.adapt().warm_start()) settings.kind = KindOfJob(resolved);
  settings.shape = ShapeOfJob(resolved);
  settings.workers_min = spec.workers().min();
  settings.workers_max = std::min(spec.workers().max(), WorkersOfARound(settings.adapt));
  settings.workers_max -= settings.workers_max % settings.mesh_devices;
  settings.spares = spec.workers().spares();
  const v1::Stop& stop = spec.stop();
  if (stop.has_train_loss()) settings.stop_train_loss = stop.train_loss();
  if (stop.has_epochs()) settings.stop_epochs = stop.epochs();
  if (stop.has_rounds()) settings.stop_rounds = stop.rounds();
  if (stop.has_time()) settings.stop_time = DurationOf(stop.time());
  return settings;
}

}  // namespace tactus::spec
