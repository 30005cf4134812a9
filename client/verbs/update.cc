#include "client/verbs/update.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"
#include "client/yaml/message_reader.h"
#include "client/yaml/yaml_file.h"
#include "policies/axes.h"

namespace tactus::client {
namespace {

constexpr const char* kSpec = "spec.";
const std::vector<std::string> kAxes(policies::kAxisFields.begin(), policies::kAxisFields.end());

// "stop.epochs" of "spec.stop.epochs" and of itself.
std::string WithoutSpec(const std::string& path) {
  return path.starts_with(kSpec) ? path.substr(std::string(kSpec).size()) : path;
}

void ReadChanges(const std::vector<Override>& overrides, JobUpdate* update) {
  YamlValue root;
  root.kind = YamlValue::Kind::kMap;
  for (const Override& change : overrides) {
    YamlDocument value = ParseYamlArgument(change.value);
    std::string problem = value.error;
    const std::string path = WithoutSpec(change.path);
    if (problem.empty()) problem = SetYamlPath(path, std::move(value.root), &root);
    if (!problem.empty()) update->errors.push_back("--set " + change.path + ": " + problem);
  }
  if (!update->errors.empty()) return;
  for (const std::string& error : ErrorTexts(ReadMessage(root, update->request.mutable_spec()))) {
    update->errors.push_back("--set: " + error);
  }
}

void ChangeFrozen(const UpdateCommand& command, const v1::Job& job, v1::JobSpec* spec) {
  std::vector<std::string> frozen(job.spec().adapt().frozen().begin(),
                                  job.spec().adapt().frozen().end());
  for (const std::string& axis : command.freeze) {
    if (std::ranges::find(frozen, axis) == frozen.end()) frozen.push_back(axis);
  }
  for (const std::string& axis : command.unfreeze) std::erase(frozen, axis);
  v1::Adapt* adapt = spec->mutable_adapt();
  adapt->clear_frozen();
  for (const std::string& axis : frozen) adapt->add_frozen(axis);
}

// Sorted, each once, none within another.
std::vector<std::string> Distinct(std::vector<std::string> paths) {
  std::ranges::sort(paths);
  std::vector<std::string> kept;
  for (const std::string& path : paths) {
    const bool covered = std::ranges::any_of(kept, [&](const std::string& other) {
      return path == other || path.starts_with(other + ".");
    });
    if (!covered) kept.push_back(path);
  }
  return kept;
}

}  // namespace

bool NeedsJob(const UpdateCommand& command) {
  return !command.labels.empty() || !command.labels_removed.empty() || !command.freeze.empty() ||
         !command.unfreeze.empty();
}

JobUpdate BuildUpdate(const UpdateCommand& command, const v1::Job& job) {
  JobUpdate update;
  v1::UpdateJobRequest& request = update.request;
  request.set_name(command.name);
  request.set_validate_only(command.dry_run);
  // Labels and frozen axes are sent whole: without an etag they would undo what somebody else
  // changed since they were read.
  request.set_etag(!command.etag.empty() ? command.etag : NeedsJob(command) ? job.etag() : "");
  std::vector<std::string> paths;
  ReadChanges(command.overrides, &update);
  for (const Override& change : command.overrides) {
    paths.push_back(kSpec + WithoutSpec(change.path));
  }
  if (command.priority) {
    request.mutable_spec()->set_priority(*command.priority);
    paths.emplace_back("spec.priority");
  }
  if (!command.freeze.empty() || !command.unfreeze.empty()) {
    ChangeFrozen(command, job, request.mutable_spec());
    paths.emplace_back("spec.adapt.frozen");
  }
  if (!command.labels.empty() || !command.labels_removed.empty()) {
    auto& labels = *request.mutable_labels();
    labels.insert(job.labels().begin(), job.labels().end());
    for (const auto& [key, value] : command.labels) labels[key] = value;
    for (const std::string& key : command.labels_removed) labels.erase(key);
    paths.emplace_back("labels");
  }
  if (paths.empty()) {
    update.errors.emplace_back(
        "update: nothing is to be changed; allowed are --set, --label, --priority, --freeze and "
        "--unfreeze");
  }
  for (const std::string& path : Distinct(paths)) request.mutable_update_mask()->add_paths(path);
  return update;
}

namespace {

class UpdateVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "update", "Change what may change of a job that is not over; the rest is refused");
    AddJob(verb, &command_.name);
    AddRepeated(verb, "--set", &set_,
                "Replace a value: --set spec.stop.epochs=5; stop, validation, policies and bounds "
                "of adapt, the learning rate, retries, hold, workers.min, workers.max and "
                "workers.spares may change");
    AddRepeated(verb, "--label", &labels_,
                "Set a label, or remove one: --label team=vision, team-");
    AddPriority(verb, &priority_);
    AddRepeated(verb, "--freeze", &command_.freeze, "Keep this axis of the plan as it is")
        ->check(CLI::IsMember(kAxes));
    AddRepeated(verb, "--unfreeze", &command_.unfreeze, "Let the policy of this axis decide again")
        ->check(CLI::IsMember(kAxes));
    verb->add_option("--if-etag", command_.etag, "Only if the job's etag is this one still");
    verb->add_flag("--dry-run", command_.dry_run, "Only have it checked by the coordinator");
  }
  std::string Check() override {
    std::vector<std::string> set;
    for (const std::string& text : labels_) {
      const bool removed =
          text.size() > 1 && text.back() == '-' && text.find('=') == std::string::npos;
      (removed ? command_.labels_removed : set)
          .push_back(removed ? text.substr(0, text.size() - 1) : text);
    }
    command_.priority = ParsePriority(priority_);
    const std::string problem = ReadLabels(set, &command_.labels);
    return problem.empty() ? ReadOverrides(set_, &command_.overrides) : problem;
  }
  ExitCode Run(const Means& means) override {
    bool usage = false;
    const absl::StatusOr<v1::Job> job = TryUpdate(*means.client, means.screen, &usage);
    if (usage) return ExitCode::kUsage;
    if (!job.ok()) return ReportError(job.status(), means.screen);
    means.screen.Say("job " + Printable(ShortName(job->name())) +
                     (command_.dry_run ? " would be updated; nothing was changed" : " updated"));
    return ExitCode::kOk;
  }

 private:
  // Once more when somebody else changed the job between looking and changing.
  absl::StatusOr<v1::Job> TryUpdate(api::Client& client, const Screen& screen, bool* usage) const {
    constexpr int kAttemptsMax = 5;
    for (int attempt = 1;; ++attempt) {
      v1::Job job;
      if (NeedsJob(command_)) {
        absl::StatusOr<v1::Job> found = client.GetJob(command_.name);
        if (!found.ok()) return found.status();
        job = *std::move(found);
      }
      const JobUpdate update = BuildUpdate(command_, job);
      screen.Say(update.errors);
      if (!update.errors.empty()) {
        *usage = true;
        return job;
      }
      absl::StatusOr<v1::Job> changed = client.UpdateJob(update.request);
      const bool theirs = command_.etag.empty() && absl::IsAborted(changed.status());
      if (!theirs || attempt == kAttemptsMax) return changed;
    }
  }

  UpdateCommand command_;
  std::vector<std::string> set_;
  std::vector<std::string> labels_;
  std::string priority_;
};

}  // namespace

std::unique_ptr<Verb> MakeUpdate() { return std::make_unique<UpdateVerb>(); }

}  // namespace tactus::client
