// A job's progress on the screen until it ends; shared by watch, submit --follow and run.

#pragma once

#include <functional>
#include <string>

#include "client/api/client.h"
#include "client/observe/event_loop.h"
#include "client/observe/follow.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

struct ShowJobOptions {
  std::string name{};
  bool json = false;
  std::function<bool()> stop = nullptr;  // as FollowHandlers::stop
};

// Follows a job and prints what ProgressView makes of its events, in the style that fits `screen`.
Followed ShowJob(api::Client& client, EventLoop& loop, const Screen& screen,
                 const ShowJobOptions& options);

// Says what is wrong with a job that ended without success; nothing for one that succeeded. Returns
// the exit code. `subject` stands before the message: the job file, or empty.
ExitCode ReportEnd(const v1::Job& job, const Screen& screen, const std::string& subject);

}  // namespace tactus::client
