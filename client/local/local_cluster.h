// A coordinator and one agent on this machine, for one job: `tactus run`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"
#include "client/local/child_process.h"
#include "client/observe/event_loop.h"

namespace tactus::client {

struct LocalClusterOptions {
  std::string binary_folder{};   // where tactus-coordinator and tactus-agent are
  std::string folder{};          // of this run; exists and is writable
  std::uint32_t workers = 1;     // devices cpu:0 to cpu:workers-1
  std::vector<double> speeds{};  // emulated, one a worker; empty: real
  bool programs = false;         // the agent takes jobs that are programs
};

// What the coordinator wrote about itself: "grpc=HOST:PORT" and "metrics=HOST:PORT", a line each.
struct ClusterAddresses {
  std::string grpc{};
  std::string metrics{};  // empty: none
};
ClusterAddresses ParseAddressFile(const std::string& text);

// Its processes end with it, with us, and with Stop.
class LocalCluster {
 public:
  LocalCluster(const LocalClusterOptions& options, EventLoop& loop)
      : options_(options), loop_(loop) {}
  ~LocalCluster() { Stop(); }
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  // Starts both and waits until the coordinator says where it listens. No gRPC call may have been
  // made in this process before. Errors: Internal, one ended, with its last words;
  // DeadlineExceeded, after 30 s; Cancelled, a signal came; of the file system.
  absl::Status Start();

  // Internal with its last words when one has ended.
  absl::Status Check();

  // SIGTERM, and SIGKILL after 10 seconds or at the next signal that `loop` counts. Idempotent.
  void Stop();

  const ClusterAddresses& addresses() const { return addresses_; }

 private:
  absl::Status StartCoordinator();
  absl::Status StartAgent();
  absl::Status AwaitAddress();
  void End(std::optional<ChildProcess>* child, Duration patience);

  const LocalClusterOptions options_;
  EventLoop& loop_;
  ClusterAddresses addresses_;
  std::optional<ChildProcess> coordinator_;
  std::optional<ChildProcess> agent_;
};

}  // namespace tactus::client
