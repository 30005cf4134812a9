// The coordinator as the verbs see it: plain calls with deadlines, absl::Status out.

#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::client {

inline constexpr const char* kServerDefault = "127.0.0.1:7070";

// Where an address may come from, the strongest first; empty: not given.
struct ServerSources {
  std::string flag{};
  std::string environment{};  // TACTUS_SERVER
  std::string config_path{};  // a file with the key `server`; it may be missing
};

// The first address given, else kServerDefault.
// Errors: InvalidArgument, the address is not host:port, or the file is not YAML or has another
// key.
absl::StatusOr<std::string> ServerAddress(const ServerSources& sources);

struct ConnectionOptions {
  std::string server = kServerDefault;     // host:port
  Duration request_timeout = Seconds(10);  // of each unary call
};

// A channel to one coordinator, made at the first call. Blocking calls, for the main thread. Errors
// of all calls: what the server says; Unavailable, nobody answers, with what to do;
// DeadlineExceeded.
class Connection {
 public:
  explicit Connection(const ConnectionOptions& options);

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  // Newest first; at most `count_max`.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(std::size_t count_max);
  absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request);
  // Oldest first; at most `count_max`.
  absl::StatusOr<v1::ListRoundsResponse> ListRounds(const std::string& name, std::size_t count_max);
  // By plan version; at most `count_max`.
  absl::StatusOr<v1::ListDecisionsResponse> ListDecisions(const std::string& name,
                                                          std::size_t count_max);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();

  // Hands over the chunks of one file in order; `size_bytes` sets the deadline, a second a MiB more
  // than for other calls. `write` returns false to end early: then Aborted.
  absl::Status DownloadArtifact(const v1::DownloadArtifactRequest& request,
                                std::uint64_t size_bytes,
                                const std::function<bool(const std::string&)>& write);

  v1::Jobs::Stub& jobs() { return *jobs_; }
  const std::string& server() const { return options_.server; }

  // An error of a call as this class reports it.
  absl::Status Translate(const grpc::Status& status) const;

 private:
  Connection(const ConnectionOptions& options, const std::shared_ptr<grpc::Channel>& channel);
  std::unique_ptr<grpc::ClientContext> NewContext(Duration timeout) const;
  template <typename Response, typename Stub, typename Method, typename Request>
  absl::StatusOr<Response> Call(Stub& stub, Method method, const Request& request) const;

  const ConnectionOptions options_;
  const std::unique_ptr<v1::Jobs::Stub> jobs_;
  const std::unique_ptr<v1::Nodes::Stub> nodes_;
};

// The lines that tell a person about `status`. With field violations one a field, "job.yaml: field:
// what", else "subject: message", or the message alone when `subject` is empty.
std::vector<std::string> ErrorLines(const absl::Status& status, const std::string& subject);

}  // namespace tactus::client
