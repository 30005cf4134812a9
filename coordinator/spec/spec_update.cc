#include "coordinator/spec/spec_update.h"

#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/spec/adapt_checks.h"
#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/resolve.h"
#include "coordinator/spec/spec_validation.h"
#include "policies/axes.h"
#include "policies/optimizers.h"

namespace tactus::spec {
namespace {

using google::protobuf::util::FieldMaskUtil;

constexpr int kPathsMax = 64;
constexpr std::size_t kLabelsMax = 64;
constexpr std::size_t kJobLabelBytesMax = 253;
constexpr char kSpecPrefix[] = "spec.";

// What may change, within the specification; with everything below it.
const std::vector<std::string>& Changeable() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all = {"priority", "retries", "hold", "stop", "validation"};
    for (const std::string_view axis : policies::kAxisFields) {
      all.push_back("adapt." + std::string(axis));
    }
    all.push_back("adapt.frozen");
    for (const policies::OptimizerRow& optimizer : policies::Optimizers()) {
      all.push_back("optimizer." + std::string(optimizer.name) + ".learning_rate");
    }
    all.insert(all.end(), {"workers.min", "workers.max", "workers.spares"});
    return all;
  }();
  return paths;
}

bool MayChange(const std::string& path) {
  return FieldMaskUtil::IsValidPath<v1::JobSpec>(path) &&
         std::ranges::any_of(Changeable(), [&path](const std::string& allowed) {
           return path == allowed || path.starts_with(allowed + ".");
         });
}

void CheckPath(const std::string& path, const v1::JobSpec& spec, FieldChecks& checks) {
  if (path == "labels") return;
  const bool in_spec = path.starts_with(kSpecPrefix);
  const std::string inner = in_spec ? path.substr(sizeof(kSpecPrefix) - 1) : "";
  if (!in_spec || !MayChange(inner)) {
    return checks.Add("update_mask", "found " + Shown(path) +
                                         ", allowed are labels and, after spec., " +
                                         Enumerate(Changeable()) + ", and the fields of these");
  }
  const std::string rule = OptimizerName(Resolve(spec));
  if (inner.starts_with("optimizer.") && !inner.starts_with("optimizer." + rule + ".")) {
    checks.Add("update_mask", "found " + Shown(path) + ", but the job's optimizer is " + rule);
  }
}

absl::Status CheckMask(const v1::JobSpec& spec, const v1::UpdateJobRequest& request) {
  FieldChecks checks;
  const auto& paths = request.update_mask().paths();
  if (paths.empty()) checks.Missing("update_mask", "name the fields that are to change");
  if (paths.size() > kPathsMax) {
    checks.Add("update_mask", "found " + std::to_string(paths.size()) + " paths, allowed are " +
                                  std::to_string(kPathsMax));
    return runtime::InvalidFields(checks.violations());
  }
  for (const std::string& path : paths) CheckPath(path, spec, checks);
  return checks.violations().empty() ? absl::OkStatus()
                                     : runtime::InvalidFields(checks.violations());
}

// How members follow leaders: of a policy that has none, as the engine has it.
void SetLeaders(const v1::SynchronizationAxis& axis, v1::SynchronizationAxis& read) {
  v1::SynchronizationAxis leaders;
  if (axis.policy() == v1::SYNCHRONIZATION_POLICY_LSGD) leaders = axis;
  leaders.set_policy(v1::SYNCHRONIZATION_POLICY_LSGD);
  FillDefaults("", &leaders);
  read.set_pull(leaders.pull());
  read.set_node_pull(leaders.node_pull());
  read.set_step_pull(leaders.step_pull());
  read.set_node_step_pull(leaders.node_step_pull());
  read.set_node_period(leaders.node_period());
  read.set_loss_window(leaders.loss_window());
}

// Likewise how they mix.
bool CorrectsBias(const v1::SynchronizationAxis& axis) {
  return !axis.has_correct_bias() || axis.correct_bias();
}

// What workers read of how rounds are run. Where there are no windows of local steps, or no rounds
// that overlap, it does not matter what they would be, and they stay as they were. A policy without
// windows at both times keeps the momentum, so to say.
v1::SynchronizationAxis RoundsOf(const ResolvedSpec& spec, const ResolvedSpec& before) {
  const v1::SynchronizationAxis& axis = spec->adapt().synchronization();
  const v1::SynchronizationAxis& former = before->adapt().synchronization();
  const v1::SynchronizationAxis& windows = axis.has_elastic() ? axis : former;
  v1::SynchronizationAxis read;
  read.set_block_momentum(windows.block_momentum());
  read.set_block_momentum_steps(windows.block_momentum_steps());
  read.set_local_momentum(windows.local_momentum() == v1::LOCAL_MOMENTUM_RESET
                              ? v1::LOCAL_MOMENTUM_RESET
                              : v1::LOCAL_MOMENTUM_KEEP);
  read.set_elastic(windows.elastic());
  SetLeaders(axis.policy() == v1::SYNCHRONIZATION_POLICY_LSGD ? axis : former, read);
  read.set_correct_bias(CorrectsBias(axis.has_correct_bias() ? axis : former));
  read.set_look_ahead((axis.has_look_ahead() ? axis : former).look_ahead());
  return read;
}

// Numbers that workers have of their start, and that who joins them must have alike; those of a
// policy that has none are the engine's own.
v1::EncodingAxis NumbersOf(const v1::EncodingAxis& axis) {
  v1::EncodingAxis numbers = axis;
  for (const v1::EncodingPolicy policy :
       {v1::ENCODING_POLICY_DQ, v1::ENCODING_POLICY_ADACOMP, v1::ENCODING_POLICY_SKETCH}) {
    numbers.set_policy(policy);
    FillDefaults("", &numbers);
  }
  numbers.clear_policy();
  return numbers;
}

// What makes the workers start anew when it changes.
std::string ReadAtStart(const ResolvedSpec& spec, const ResolvedSpec& before) {
  const v1::Adapt& adapt = spec->adapt();
  v1::JobSpec read;
  *read.mutable_stop() = spec->stop();
  *read.mutable_validation() = spec->validation();
  *read.mutable_optimizer() = spec->optimizer();
  read.mutable_workers()->set_min(spec->workers().min());
  read.mutable_workers()->set_max(spec->workers().max());
  read.mutable_adapt()->mutable_batch()->set_micro_batch(adapt.batch().micro_batch());
  *read.mutable_adapt()->mutable_learning_rate() = adapt.learning_rate();
  read.mutable_adapt()->mutable_learning_rate()->clear_policy();
  *read.mutable_adapt()->mutable_synchronization() = RoundsOf(spec, before);
  *read.mutable_adapt()->mutable_encoding() = NumbersOf(adapt.encoding());
  return read.SerializeAsString();
}

bool NeedsRestart(const ResolvedSpec& before, const ResolvedSpec& after) {
  return ReadAtStart(before, before) != ReadAtStart(after, before);
}

// Where an axis gets another policy by that name alone, what only the former one had goes with it.
void DropFormerPolicies(const google::protobuf::FieldMask& mask, v1::JobSpec* spec) {
  for (const std::string_view axis : policies::kAxisFields) {
    const std::string section = "adapt." + std::string(axis) + ".";
    std::set<std::string> named;
    for (const std::string& path : mask.paths()) {
      if (path.starts_with(section)) named.insert(path.substr(section.size()));
    }
    if (!named.contains("policy")) continue;
    v1::Adapt* adapt = spec->mutable_adapt();
    const auto* field = v1::Adapt::descriptor()->FindFieldByName(std::string(axis));
    const std::string chosen = WordOf(*v1::AdaptPolicy_descriptor(), adapt->policy());
    DropForeign(chosen, named, adapt->GetReflection()->MutableMessage(adapt, field));
  }
}

// Equal, whatever the order in which maps are written.
bool Same(const v1::JobSpec& one, const v1::JobSpec& other) {
  const auto written = [](v1::JobSpec spec) {
    const std::map<std::string, std::string> selector(spec.workers().selector().begin(),
                                                      spec.workers().selector().end());
    spec.mutable_workers()->clear_selector();
    std::string text = spec.SerializeAsString();
    for (const auto& [key, value] : selector) text += key + "=" + value + "\n";
    return text;
  };
  return written(one) == written(other);
}

}  // namespace

absl::StatusOr<UpdatedSpec> ApplyUpdate(const v1::JobSpec& spec, const Labels& labels,
                                        const v1::UpdateJobRequest& request) {
  const absl::Status mask_status = CheckMask(spec, request);
  if (!mask_status.ok()) return mask_status;
  UpdatedSpec updated = {.spec = spec, .labels = labels};
  google::protobuf::FieldMask mask;
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "labels") {
      updated.labels = {request.labels().begin(), request.labels().end()};
    } else {
      mask.add_paths(path.substr(sizeof(kSpecPrefix) - 1));
    }
  }
  // Replaced, not merged: elements that the request leaves out are to go.
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(request.spec(), mask, options, &updated.spec);
  DropFormerPolicies(mask, &updated.spec);
  FieldChecks checks;
  CheckLabels(updated.labels, checks);
  std::vector<runtime::FieldViolation> violations = SpecViolations(updated.spec);
  violations.insert(violations.end(), checks.violations().begin(), checks.violations().end());
  if (!violations.empty()) return runtime::InvalidFields(violations);
  absl::StatusOr<job::JobSettings> settings = ParseSpec(updated.spec);
  if (!settings.ok()) return settings.status();
  updated.settings = *std::move(settings);
  updated.changed = updated.labels != labels || !Same(spec, updated.spec);
  updated.needs_restart = NeedsRestart(Resolve(spec), Resolve(updated.spec));
  return updated;
}

void CheckLabels(const Labels& labels, FieldChecks& checks) {
  if (labels.size() > kLabelsMax) {
    checks.Add("labels", "found " + std::to_string(labels.size()) + ", allowed are " +
                             std::to_string(kLabelsMax));
  }
  for (const auto& [key, value] : labels) {
    const bool sized =
        !key.empty() && key.size() <= kJobLabelBytesMax && value.size() <= kJobLabelBytesMax;
    if (sized && IsPrintable(key) && IsPrintable(value)) continue;
    checks.Add("labels", "found " + Shown(key) +
                             ", allowed are keys of 1 to 253 and values of 0 to "
                             "253 bytes without control characters");
    return;
  }
}

}  // namespace tactus::spec
