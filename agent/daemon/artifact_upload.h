// Brings the files of a result to the coordinator.

#pragma once

#include <grpcpp/client_context.h>

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/daemon/channel_source.h"
#include "agent/daemon/lifetime.h"
#include "base/id.h"
#include "base/rng.h"
#include "runtime/control_thread.h"
#include "runtime/retry.h"

namespace tactus::agent {

// One file of a job's result.
struct ArtifactFile {
  std::string job_id;
  WorkerId worker;  // that wrote it
  std::string folder;
  std::string path;        // within the folder, and its name at the coordinator
  bool gives_way = false;  // to every file that does not
};

// What the coordinator has of it then.
struct UploadedFile {
  std::string sha256;
  std::uint64_t size_bytes = 0;
};

// OK for a path that stays within its folder: relative, without "..", at most 255 bytes.
// Errors: InvalidArgument.
absl::Status CheckArtifactPath(const std::string& path);

// One file at a time, on a thread of its own, since reading and sending block: in the order given,
// but those that give way after all others. A transfer of theirs is broken off for another's and
// goes on later. The coordinator is told the file's hash and asked what it has of it already; only
// the rest is sent. A coordinator that is away is tried again for ever, like the stream; any other
// failure five times. Used on the control thread alone.
class ArtifactUploader {
 public:
  // Called on the control thread.
  using DoneHandler = std::function<void(const absl::StatusOr<UploadedFile>& file)>;

  ArtifactUploader(runtime::ControlThread& control, const ChannelSource& channel,
                   runtime::BackoffOptions backoff);
  ~ArtifactUploader();  // Breaks off a transfer that runs; no handler is called.

  // Errors in `done`: NotFound, no such file; what the coordinator answers.
  void Upload(ArtifactFile file, DoneHandler done);

  // Nobody needs that file of the worker's any more: its `done` is told so, at once where no
  // transfer of it runs, else when that has ended, which does not wait for the rest of the file.
  // Nothing where it is not among those to be brought up. Error in `done`: Cancelled.
  void GiveUp(WorkerId worker, const std::string& path);

  // While no coordinator is there that is obeyed: uploads wait, and one that fails is tried again,
  // whatever another one says of it.
  void Pause(bool paused);

  // Nothing waits and nothing runs.
  bool idle() const { return queue_.empty(); }

 private:
  struct Item {
    ArtifactFile file;
    DoneHandler done;
    int failures = 0;
    UploadedFile known{};  // empty: not known yet
    bool given_up = false;
  };
  // What another thread can be told of a transfer that runs there.
  struct Call {
    void Cancel() {
      stop.request_stop();
      context.TryCancel();
    }
    grpc::ClientContext context;
    std::stop_source stop;
  };
  // One attempt; blocks. `known`: of the file, filled in when it is empty.
  static absl::Status Transfer(const std::shared_ptr<grpc::Channel>& channel,
                               const ArtifactFile& file, UploadedFile& known, Call& call);
  void Begin();
  // Where those that give way begin, behind the first of all. Requires: there is a first.
  std::deque<Item>::iterator FirstToGiveWay();
  // The first one is in the way of the second.
  bool IsInTheWay() const;
  void GiveWay();
  void EndFirst(const absl::Status& status);
  void OnAttempt(const absl::Status& status);

  runtime::ControlThread& control_;
  const ChannelSource channel_;
  const runtime::BackoffOptions backoff_;
  Rng rng_;
  std::deque<Item> queue_;  // the first one runs, unless it waits for the end of a pause
  bool paused_ = false;
  bool waiting_ = false;
  runtime::Timer retry_timer_;
  std::shared_ptr<Call> call_;  // shared with the transfer that runs
  Lifetime lifetime_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace tactus::agent
