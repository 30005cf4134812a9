// What agents and the core say to each other: each message is translated in one function here.

#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "coordinator/job/actions.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// The event of NodeJoined that a Hello stands for; `same_incarnation` is left false.
// Errors: InvalidArgument, a name or device that is not right, with the field's path.
absl::StatusOr<job::NodeJoined> FromProto(const agent::v1::Hello& hello);

// OK when an agent of this version and a coordinator of that one can work together: when the major
// version is the same, or the agent does not say its own. Within one, messages only gain fields.
// Errors: FailedPrecondition with the reason AGENT_VERSION_MISMATCH.
absl::Status CheckAgentVersion(const std::string& agent, const std::string& coordinator);

// The event in a numbered message of the node's agent. Errors: InvalidArgument, a message without
// contents or of log lines, which are no event, or a fault that is not right.
absl::StatusOr<job::Event> FromProto(const agent::v1::FromAgent& message, const std::string& node);

agent::v1::ToAgent ToProto(const job::StartWorker& action);
agent::v1::ToAgent ToProto(const job::SendToWorker& action);
agent::v1::ToAgent ToProto(const job::StopWorker& action);
agent::v1::ToAgent ToProto(const job::LookAtWorker& action);

}  // namespace tactus::service
