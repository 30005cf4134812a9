// What several verbs do and answer with.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "client/observe/show_job.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "client/verbs/verb.h"

namespace tactus::client {

inline constexpr std::size_t kDecisionsMax = 100'000;  // of one job
inline constexpr int kRoundsOfAPage = 1000;

// "job demo-1 is paused", "node n0 is ready": how it is after a call; or the call's error.
ExitCode SayState(const absl::StatusOr<v1::Job>& job, const Screen& screen);
ExitCode SayState(const absl::StatusOr<v1::Node>& node, const Screen& screen);

// A verb that is one call about the job, or the node, that it names, and says its state then.
std::unique_ptr<Verb> MakeCall(const std::string& word, const std::string& help,
                               absl::StatusOr<v1::Job> (api::Client::*call)(const std::string&));
std::unique_ptr<Verb> MakeCall(const std::string& word, const std::string& help,
                               absl::StatusOr<v1::Node> (api::Client::*call)(const std::string&));

// Shows a job until it ends, or until Ctrl-C.
ExitCode FollowToEnd(const ShowJobOptions& options, api::Client& client, const Screen& screen);

// True, and said, where standard output is a terminal: what is drawn is for programs to show.
bool RefuseTerminal(const Screen& screen);

}  // namespace tactus::client
