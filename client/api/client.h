// The client library: a coordinator as plain calls. One method an RPC; examples/cpp shows its use.

#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "client/api/cancellation.h"
#include "client/api/options.h"
#include "tactus/v1/admin.grpc.pb.h"
#include "tactus/v1/artifacts.grpc.pb.h"
#include "tactus/v1/enrolment.grpc.pb.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::api {

// What a transfer is checked against.
struct Content {
  std::uint64_t size_bytes = 0;
  std::string sha256{};  // 64 hexadecimal digits in lower case; empty: not known, not checked
  bool known = true;     // false: nothing of it is, and nothing is checked
};

struct Arrived;  // of a transfer; transfers.cc

// A channel to one coordinator, made at the first call. All calls block. One thread at a time: make
// a Client for each thread.
//
// Every unary call has a deadline. One that may be repeated without another effect, which are all
// but where it is said, is repeated after Unavailable with growing delays, within its deadline and
// the budget of ClientOptions.
//
// Errors of all calls: what the coordinator says, with its google.rpc details, which
// runtime::ReasonOf and runtime::FieldViolations (runtime/status.h) read from the status;
// Unavailable, nobody answers; DeadlineExceeded.
class Client {
 public:
  // Plain, whatever options.security says. Requires: `options` are valid.
  explicit Client(const ClientOptions& options);

  // As options.security says. Requires: `options` are valid. Errors: InvalidArgument, the address
  // is not loopback and nobody said how to go there; of identity::MakeChannelCredentials.
  static absl::StatusOr<std::unique_ptr<Client>> Dial(const ClientOptions& options);

  // From now on `cancellation` ends unary calls as well, which return Cancelled then. It outlives
  // the client or is taken back with null. Not while a call is made.
  void EndCallsWith(Cancellation* cancellation) { cancellation_ = cancellation; }

  // Jobs. A `name` is a resource's name or the last part of it.

  // Gives `request` a new request_id unless it has one, so that a repetition makes no second job.
  absl::StatusOr<v1::Job> CreateJob(v1::CreateJobRequest request);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  // With wait_for_change_after: answers once the job changed, or after 30 s.
  absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request);
  // One page.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) {
    return Make(*jobs_, &v1::Jobs::Stub::ListJobs, request);
  }
  // All pages from `request`'s on, at most `count_max` jobs; its page_size is not looked at.
  absl::StatusOr<v1::ListJobsResponse> ListAllJobs(v1::ListJobsRequest request,
                                                   std::size_t count_max);
  // Repeated only without an etag: with one, a repetition would find it changed.
  absl::StatusOr<v1::Job> UpdateJob(const v1::UpdateJobRequest& request);
  absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request) {
    return Make(*jobs_, &v1::Jobs::Stub::CancelJob, request);
  }
  absl::StatusOr<v1::Job> PauseJob(const std::string& name) {
    return MakeNamed(*jobs_, &v1::Jobs::Stub::PauseJob, name);
  }
  absl::StatusOr<v1::Job> ResumeJob(const std::string& name) {
    return MakeNamed(*jobs_, &v1::Jobs::Stub::ResumeJob, name);
  }
  absl::Status DeleteJob(const std::string& name) {
    return DeleteNamed(*jobs_, &v1::Jobs::Stub::DeleteJob, name);
  }
  absl::StatusOr<v1::ListRoundsResponse> ListRounds(const v1::ListRoundsRequest& request) {
    return Make(*jobs_, &v1::Jobs::Stub::ListRounds, request);
  }
  // Oldest first; at most `count_max`.
  absl::StatusOr<v1::ListRoundsResponse> ListAllRounds(const std::string& name,
                                                       std::size_t count_max);
  // All pages from `request`'s on, at most `count_max` rounds; its page_size is not looked at.
  absl::StatusOr<v1::ListRoundsResponse> ListAllRounds(v1::ListRoundsRequest request,
                                                       std::size_t count_max);
  absl::StatusOr<v1::ListValidationsResponse> ListValidations(const std::string& name) {
    return MakeNamed(*jobs_, &v1::Jobs::Stub::ListValidations, name);
  }
  absl::StatusOr<v1::ListDecisionsResponse> ListDecisions(const v1::ListDecisionsRequest& request) {
    return Make(*jobs_, &v1::Jobs::Stub::ListDecisions, request);
  }
  // By plan version; at most `count_max`.
  absl::StatusOr<v1::ListDecisionsResponse> ListAllDecisions(const std::string& name,
                                                             std::size_t count_max);
  // Gives `request` a new request_id unless it has one, so that a repetition does nothing again.
  absl::StatusOr<v1::RevertDecisionResponse> RevertDecision(v1::RevertDecisionRequest request);
  absl::StatusOr<v1::DeviceValues> GetDeviceValues(const std::string& name) {
    return MakeNamed(*jobs_, &v1::Jobs::Stub::GetDeviceValues, name);
  }

  // Nodes.

  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request) {
    return Make(*nodes_, &v1::Nodes::Stub::ListNodes, request);
  }
  absl::StatusOr<v1::ListNodesResponse> ListAllNodes();
  absl::StatusOr<v1::Node> GetNode(const std::string& name) {
    return MakeNamed(*nodes_, &v1::Nodes::Stub::GetNode, name);
  }
  absl::StatusOr<v1::Node> CordonNode(const std::string& name) {
    return MakeNamed(*nodes_, &v1::Nodes::Stub::CordonNode, name);
  }
  absl::StatusOr<v1::Node> DrainNode(const std::string& name) {
    return MakeNamed(*nodes_, &v1::Nodes::Stub::DrainNode, name);
  }
  absl::StatusOr<v1::Node> UncordonNode(const std::string& name) {
    return MakeNamed(*nodes_, &v1::Nodes::Stub::UncordonNode, name);
  }
  // Takes a second or so, and up to 15 where an agent does not answer.
  absl::StatusOr<v1::ProbeLinkResponse> ProbeLink(const v1::ProbeLinkRequest& request) {
    Call call = {.timeout = options_.request_timeout + Seconds(20)};
    return Make(*nodes_, &v1::Nodes::Stub::ProbeLink, request, &call);
  }
  absl::Status DeleteNode(const std::string& name) {
    return DeleteNamed(*nodes_, &v1::Nodes::Stub::DeleteNode, name);
  }

  // Streams. Each hands what arrives to a function of the caller's, in order and in this thread,
  // until there is no more, the function returns false (then the call returns ok), or
  // `cancellation`, which may be null, is cancelled (then Cancelled). One that was open and breaks
  // off, whether anything came or not, is opened again where it broke off, for as long as
  // ClientOptions::stream_lost_max since it was open last.

  // Returns ok when the job is over. A coordinator that was restarted meanwhile begins with the job
  // as it is: an event may be missed then, a state never.
  absl::Status WatchJob(v1::WatchJobRequest request,
                        const std::function<bool(const v1::JobEvent&)>& event,
                        Cancellation* cancellation = nullptr);
  absl::Status StreamLogs(v1::StreamLogsRequest request,
                          const std::function<bool(const v1::LogEntry&)>& entry,
                          Cancellation* cancellation = nullptr);

  // Transfers. They go on where they broke off, as often as a unary call is repeated; a download
  // whose call reached ClientOptions::download_call_max with some progress, as often as that.

  using Write = std::function<absl::Status(std::string_view data)>;  // an error ends the transfer

  // One file of a job's result. DataLoss: what came is not `content`; do not use it. Say its hash
  // where the job is not over: a checkpoint of the same name may follow it while it comes.
  absl::Status DownloadArtifact(const v1::DownloadArtifactRequest& request, const Content& content,
                                const Write& write);
  // DataLoss: what came has another hash.
  absl::Status DownloadBlob(const std::string& sha256, const Write& write);
  absl::StatusOr<v1::Blob> GetBlob(const std::string& sha256);
  // The file's content becomes a blob, unless it is one already; only what is missing travels.
  // Errors also: NotFound and others of the file; Aborted, it changed meanwhile.
  absl::StatusOr<v1::Blob> UploadFile(const std::string& path);

  // Administration.

  // A copy of the database. Not repeated: an error makes what was written worthless.
  absl::Status Backup(const Write& write);
  absl::StatusOr<v1::CheckIntegrityResponse> CheckIntegrity();
  // Makes a token, each time another one; not repeated.
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::Status SetLogLevel(const v1::SetLogLevelRequest& request) {
    return Make(*admin_, &v1::Admin::Stub::SetLogLevel, request).status();
  }

  // For callers with their own threads of events: the calls of gRPC, without deadlines and
  // repetitions.
  v1::Jobs::Stub& jobs() { return *jobs_; }
  const ClientOptions& options() const { return options_; }
  const std::string& server() const { return options_.server; }

  // An error of a call as this class reports it.
  absl::Status Translate(const grpc::Status& status) const;

 private:
  enum class Repeat { kYes, kNo };
  struct Call {
    Duration timeout{};
    Repeat repeat = Repeat::kYes;
    int attempts = 0;                   // made; set by Repeatedly
    Instant deadline = Instant::max();  // of all attempts together
  };
  class Reopening;
  template <typename Stub, typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  Client(const ClientOptions& options, const std::shared_ptr<grpc::Channel>& channel);
  Call DefaultCall() const { return {.timeout = options_.request_timeout}; }
  // The answer of a unary call. `call` says how it is made, and afterwards in how many attempts.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Make(Stub& stub, Method<Stub, Request, Response> method,
                                const Request& request, Call* call) {
    Response response;
    const absl::Status status = MakeUnary(call, [&](grpc::ClientContext* context) {
      return (stub.*method)(context, request, &response);
    });
    if (!status.ok()) return status;
    return response;
  }
  // As the options have it for all calls.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Make(Stub& stub, Method<Stub, Request, Response> method,
                                const Request& request) {
    Call call = DefaultCall();
    return Make(stub, method, request, &call);
  }
  // A call whose request only names something.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> MakeNamed(Stub& stub, Method<Stub, Request, Response> method,
                                     const std::string& name) {
    Request request;
    request.set_name(name);
    return Make(stub, method, request);
  }
  // Likewise, of one that deletes it. NotFound after a repetition is success: the first attempt had
  // got through, and its answer was lost.
  template <typename Stub, typename Request, typename Response>
  absl::Status DeleteNamed(Stub& stub, Method<Stub, Request, Response> method,
                           const std::string& name) {
    Request request;
    request.set_name(name);
    Call call = DefaultCall();
    const absl::Status status = Make(stub, method, request, &call).status();
    return call.attempts > 1 && absl::IsNotFound(status) ? absl::OkStatus() : status;
  }
  // Attempts with a context each, under one deadline and the user's cancellation.
  absl::Status MakeUnary(Call* call,
                         const std::function<grpc::Status(grpc::ClientContext*)>& attempt);
  // The one loop of repetitions: makes attempts until one succeeds or may not be repeated.
  absl::Status Repeatedly(Call* call, const std::function<absl::Status()>& attempt);
  bool MayRepeat(const absl::Status& status, const Call& call);
  // `open(context, offset)` begins a call that brings what is behind `offset` bytes.
  template <typename Chunk, typename Open>
  absl::Status Download(const Open& open, const Write& write, Arrived* arrived);
  absl::Status NothingCame(Duration limit) const;
  // Time for so many bytes: a second a MiB beside that of a call.
  Duration TransferTimeout(std::uint64_t size_bytes) const;
  absl::Status UploadFrom(const std::string& path, const Content& content, std::uint64_t offset,
                          v1::Blob* blob);

  const ClientOptions options_;
  const std::unique_ptr<v1::Jobs::Stub> jobs_;
  const std::unique_ptr<v1::Nodes::Stub> nodes_;
  const std::unique_ptr<v1::Artifacts::Stub> artifacts_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  const std::unique_ptr<v1::Enrolment::Stub> enrolment_;
  Cancellation* cancellation_ = nullptr;  // of unary calls; null: nobody ends them
  double budget_;
  Rng rng_;
};

}  // namespace tactus::api
