// The line to an agent that is another process.

#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "agent/worker/agent.h"
#include "agent/worker/messages.h"
#include "agent/worker/standpoint.h"
#include "base/time.h"
#include "threads/mutex.h"

namespace tactus::worker {

// A stream to the agent's Unix socket, which the caller closes. Errors: Unavailable, with the path
// and the system's reason.
absl::StatusOr<int> ConnectToAgent(const std::string& path);

// A Unix stream socket with one JSON message a line each way. Its own thread does all reading and
// writing; the training thread exchanges messages with it through two bounded queues. All calls:
// the training thread.
class AgentLink final : public Agent {
 public:
  // Lines waiting to be written; above it the oldest round reports are dropped (an agent that reads
  // nothing).
  static constexpr std::size_t kLinesMax = 65536;
  static constexpr std::size_t kLineBytesMax = 16u << 20;
  // Messages received and not yet taken; above it the link ends.
  static constexpr std::size_t kMessagesMax = 4096;

  // Errors: as of ConnectToAgent.
  static absl::StatusOr<std::unique_ptr<AgentLink>> Connect(const std::string& path);

  // Takes a connected socket. Owns it from now on.
  explicit AgentLink(int socket);
  ~AgentLink() override;
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  std::optional<ToWorker> Poll() override;
  absl::StatusOr<ToWorker> Receive() override;
  bool Await(Duration limit) override;
  void Send(const FromWorker& message) override;
  void Send(const SnapshottedMessage& message) override;
  bool Flush(Duration limit) override;
  void BeginStandings() override;
  Standpoint& standpoint() override { return standpoint_; }
  void HangUp() override;

 private:
  struct Line {
    std::string text;
    bool droppable = false;
  };

  void Queue(Line line);
  void Run();
  void ReadSome(std::string& input);
  bool WriteSome(std::string& output);
  void TellStanding();
  void TakeLines(std::string& input);
  bool Deliver(ToWorker message);
  void End(absl::Status status);
  void Wake();

  const int socket_;
  Standpoint standpoint_;        // own synchronisation
  int wake_pipe_[2] = {-1, -1};  // own synchronisation: wakes the link's thread

  threads::Mutex mutex_;
  threads::Condition changed_;
  std::deque<ToWorker> received_ ABSL_GUARDED_BY(mutex_);
  std::deque<Line> to_send_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // a line is half written
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool tells_standing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why the link is over, ok while it is up

  std::thread thread_;  // last: runs over all the above
};

}  // namespace tactus::worker
