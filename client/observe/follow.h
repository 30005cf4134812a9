// Following a job to its end, over lost connections.

#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/time.h"
#include "client/api/client.h"
#include "client/observe/event_loop.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// How long a coordinator that answered before is waited for.
inline constexpr Duration kLostMax = Seconds(60);

struct FollowHandlers {
  std::function<void(const v1::JobEvent&)> event;
  std::function<void(const std::string&)> say;  // for a person: the connection was lost
  // Asked often: true ends the following. Null: never.
  std::function<bool()> stop = nullptr;
};

struct Followed {
  enum class End {
    kOver,         // `job` is over
    kInterrupted,  // a signal came
    kStopped,      // handlers.stop said so
    kLost,         // `status` says why
  };
  End end = End::kLost;
  v1::Job job;  // as it was last seen
  absl::Status status;
};

// Returns when the job is over, or for another reason. A coordinator that does not answer is tried
// again for a minute. Blocks; runs `loop`.
Followed Follow(api::Client& client, EventLoop& loop, const std::string& name,
                const FollowHandlers& handlers);

}  // namespace tactus::client
