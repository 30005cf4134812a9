#include "coordinator/job/actions.h"

namespace tactus::job {

const std::string* NodeOf(const Action& action) {
  if (const auto* start = std::get_if<StartWorker>(&action)) return &start->node;
  if (const auto* send = std::get_if<SendToWorker>(&action)) return &send->node;
  if (const auto* stop = std::get_if<StopWorker>(&action)) return &stop->node;
  if (const auto* look = std::get_if<LookAtWorker>(&action)) return &look->node;
  return nullptr;
}

const std::string* StartsAnew(const Event& event) {
  if (const auto* lost = std::get_if<NodeLost>(&event)) return &lost->node;
  const auto* joined = std::get_if<NodeJoined>(&event);
  return joined != nullptr && !joined->same_incarnation ? &joined->node : nullptr;
}

}  // namespace tactus::job
