// The files that workers read by their content's hash, fetched once and kept.

#pragma once

#include <grpcpp/client_context.h>

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/daemon/channel_source.h"
#include "agent/daemon/lifetime.h"
#include "base/rng.h"
#include "runtime/control_thread.h"
#include "runtime/retry.h"

namespace tactus::agent {

// Fetches blobs from the coordinator into FOLDER/HASH. A transfer that broke off goes on where it
// was, also in the agent's next life. Whoever wants a blob gets one whose hash was checked since:
// what arrived as it came, what was here by reading it, so that a disk that lost a bit costs a
// transfer and nobody's training. One transfer of a blob at a time, for all who want it. Transfers
// run on threads of their own; everything else on the control thread alone, which they never hold
// up.
class BlobCache {
 public:
  struct Options {
    std::string folder;
    std::uint64_t bytes_max = std::uint64_t{20} << 30;  // kept; those used last stay
    Duration keep = Seconds(24 * 3600);                 // after their last use
    runtime::BackoffOptions backoff = {.initial = Seconds(0.2), .max = Seconds(5)};
  };
  // Called on the control thread, never from within Fetch.
  using DoneHandler = std::function<void(const absl::StatusOr<std::string>& path)>;

  // `channel` leads to the coordinator. What an earlier agent left is taken over.
  BlobCache(runtime::ControlThread& control, const ChannelSource& channel, Options options);
  ~BlobCache();  // Breaks off what runs; no handler is called.
  BlobCache(const BlobCache&) = delete;
  BlobCache& operator=(const BlobCache&) = delete;

  // Sees that the blob is here and pins it until Release: it is not removed. While the coordinator
  // is away this is tried again for ever; other failures five times. Returns what stands for the
  // pin. Errors in `done`: InvalidArgument, no hash; NotFound, the coordinator does not have it;
  // DataLoss, what comes has another hash; ResourceExhausted, the disk is full; others. The
  // first two are the coordinator's word alone: this disk's trouble is never called so.
  std::uint64_t Fetch(const std::string& sha256, DoneHandler done);

  // Takes back a Fetch, also one that is under way: its handler is not called any more.
  void Release(std::uint64_t pin);

  // Removes what nobody used for long, also beginnings of blobs. What is in use is touched instead,
  // so that the next agent knows of it; call this often compared with `keep`. `now` [ns since
  // 1970]. Returns how many files it removed.
  std::size_t Sweep(std::int64_t now);

 private:
  struct Pin {
    std::string sha256{};
    DoneHandler done{};  // empty: called
  };
  // How one attempt ended.
  struct Attempt {
    absl::Status status{};
    bool progressed = false;  // more of the blob is here than before
  };
  // A transfer that runs. Cancel may be called by another thread.
  struct Call {
    grpc::ClientContext context{};
    std::atomic<bool> cancelled = false;  // what the context knows too, but does not tell
    void Cancel() {
      cancelled = true;
      context.TryCancel();
    }
  };
  struct Flight {
    explicit Flight(runtime::ControlThread& control) : retry_timer(control) {}
    int failures = 0;
    std::shared_ptr<Call> call{};  // shared with the transfer; null: it waits
    runtime::Timer retry_timer;
  };

  std::string PathOf(const std::string& sha256) const { return options_.folder + "/" + sha256; }
  void Touch(const std::string& sha256) const;
  void Begin(const std::string& sha256, Flight& flight);
  void OnAttempt(const std::string& sha256, const Attempt& attempt);
  void Finish(const std::string& sha256, const absl::Status& status);
  void Answer(std::uint64_t pin, const absl::Status& status);
  bool Wanted(const std::string& sha256) const;
  bool InUse(const std::string& file) const;
  void MakeRoom();
  void RemoveLater(const std::string& path);
  static Attempt Transfer(const std::shared_ptr<grpc::Channel>& channel, const std::string& folder,
                          const std::string& sha256, Call& call);

  runtime::ControlThread& control_;
  const ChannelSource channel_;
  const Options options_;
  Rng rng_;
  std::map<std::uint64_t, Pin> pins_;
  std::uint64_t last_pin_ = 0;
  std::map<std::string, std::unique_ptr<Flight>> flights_;  // by hash
  Lifetime lifetime_;
  boost::asio::thread_pool threads_{2};
};

}  // namespace tactus::agent
