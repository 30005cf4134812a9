#include "client/verbs/job_update.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client/yaml/message_reader.h"
#include "client/yaml/yaml_file.h"

namespace tactus::client {
namespace {

constexpr const char* kSpec = "spec.";

// "stop.epochs" of "spec.stop.epochs" and of itself.
std::string WithoutSpec(const std::string& path) {
  return path.starts_with(kSpec) ? path.substr(std::string(kSpec).size()) : path;
}

void ReadOverrides(const std::vector<Override>& overrides, JobUpdate* update) {
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
  request.set_etag(!command.etag.empty() ? command.etag : NeedsJob(command) ? job.etag() : "");
  std::vector<std::string> paths;
  ReadOverrides(command.overrides, &update);
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

}  // namespace tactus::client
