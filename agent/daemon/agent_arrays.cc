// The part of Agent that starts workers of several jobs in one process.

#include <algorithm>
#include <utility>

#include "agent/daemon/agent.h"
#include "protocol/arrays.h"
#include "runtime/logging.h"

namespace tactus::agent {
namespace {

constexpr std::string_view kTemporary = "TMPDIR=";

// One job's, for the process of many: its own folder for temporary files goes with it.
std::vector<std::string> WithoutScratch(std::vector<std::string> environment) {
  std::erase_if(environment,
                [](const std::string& variable) { return variable.starts_with(kTemporary); });
  return environment;
}

}  // namespace

absl::Status Agent::EnterArray(Preparing& prepared) {
  Worker::Options& options = prepared.options;
  std::erase_if(arrays_, [](const auto& one) { return one.second.expired(); });
  const std::pair key{prepared.array, options.device};
  if (const auto known = arrays_.find(key); known != arrays_.end()) {
    options.array = known->second.lock();
    if (options.array != nullptr && !options.array->open()) options.array.reset();
  }
  if (options.array == nullptr) {
    WorkerCommand command = options.command;
    const std::string socket = box_->socket_folder() + "/a" + std::to_string(options.id.value);
    command.arguments = {options_.worker_binary, "--array", socket};
    command.environment = WithoutScratch(std::move(command.environment));
    absl::StatusOr<std::shared_ptr<const box::Held>> held =
        box_->ConfineArray(options.start, prepared.gpu);
    if (!held.ok()) return held.status();
    command.held = *std::move(held);
    absl::StatusOr<std::shared_ptr<ArrayProcess>> array =
        ArrayProcess::Start(control_, command, socket, options.user);
    if (!array.ok()) return array.status();
    options.array = *std::move(array);
    arrays_[key] = options.array;
  } else if (absl::Status status = box_->Admit(options.start); !status.ok()) {
    return status;
  }
  options.command.held = options.array->held();
  return absl::OkStatus();
}

absl::Status Agent::CheckCount(bool of_array) const {
  const auto alike = [&](bool in_array) { return in_array == of_array; };
  const auto running = std::ranges::count_if(
      workers_, [&](const auto& one) { return alike(one.second.worker->in_array()); });
  const auto preparing = std::ranges::count_if(
      preparing_, [&](const auto& one) { return alike(!one.second.array.empty()); });
  const auto workers = static_cast<std::size_t>(running + preparing);
  const std::size_t most =
      kWorkersPerDeviceMax * options_.devices.size() * (of_array ? protocol::kArrayJobsMax : 1);
  if (workers < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(std::to_string(workers) + " workers run already");
}

}  // namespace tactus::agent
