#include "client/api/client.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "client/api/deadline.h"
#include "client/api/request_id.h"
#include "identity/dial.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::api {
namespace {

constexpr int kMessageBytesMax = 64 << 20;  // two pages of rounds of the largest group
// A round of the largest group takes some 25 KB.
constexpr std::size_t kRoundsAPage = 1000;
constexpr int kPagesMax = 100'000;  // of a list, whatever a server says
constexpr Duration kLongPoll = Seconds(30);

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // they are made here
  return identity::Dial(
      {.addresses = server, .service = "tactus.v1.Jobs", .credentials = credentials},
      std::move(arguments));
}

std::string SecondsText(Duration span) {
  std::string text = std::to_string(ToSeconds(span));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

// The peer is of another kind, such as a proxy or a status page: HTTP/2 without gRPC, or HTTP/1.1.
bool SpeaksHttp(const grpc::Status& status) {
  const std::string message = status.error_message();
  return message.starts_with("Received http2 header with status") ||
         message.find("Failed parsing HTTP/2") != std::string::npos;
}

// `status` with another message; its details stay.
absl::Status WithMessage(const absl::Status& status, const std::string& message) {
  absl::Status changed(status.code(), message);
  status.ForEachPayload([&changed](auto type_url, const absl::Cord& payload) {
    changed.SetPayload(type_url, payload);
  });
  return changed;
}

// Page after page of `call(request)`; `count` says how many a list has, `merge` adds a page to it.
template <typename Response, typename Request, typename Call, typename Items>
absl::StatusOr<Response> AllPages(Request request, std::size_t count_max, std::size_t page_max,
                                  const Call& call, const Items& items) {
  Response all;
  for (int i = 0; i < kPagesMax; ++i) {
    const auto count = static_cast<std::size_t>(items(&all)->size());
    if (count >= count_max) break;
    request.set_page_size(static_cast<int>(std::min(count_max - count, page_max)));
    absl::StatusOr<Response> page = call(request);
    if (!page.ok()) return page.status();
    items(&all)->MergeFrom(*items(&*page));
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  return all;
}

template <typename Request>
Request Named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

}  // namespace

Client::Client(const ClientOptions& options)
    : Client(options, NewChannel(options.server, grpc::InsecureChannelCredentials())) {
  TACTUS_CHECK(options.Validate().ok());
}

absl::StatusOr<std::unique_ptr<Client>> Client::Dial(const ClientOptions& options) {
  TACTUS_CHECK(options.Validate().ok());
  const absl::Status exposure = identity::CheckExposure("server", options.server, options.security);
  if (!exposure.ok()) return exposure;
  auto credentials = identity::MakeChannelCredentials(options.security.tls_dir);
  if (!credentials.ok()) return credentials.status();
  return std::unique_ptr<Client>(new Client(options, NewChannel(options.server, *credentials)));
}

Client::Client(const ClientOptions& options, const std::shared_ptr<grpc::Channel>& channel)
    : options_(options),
      jobs_(v1::Jobs::NewStub(channel)),
      nodes_(v1::Nodes::NewStub(channel)),
      artifacts_(v1::Artifacts::NewStub(channel)),
      admin_(v1::Admin::NewStub(channel)),
      enrolment_(v1::Enrolment::NewStub(channel)),
      budget_(options.retry_budget),
      rng_(static_cast<std::uint64_t>(runtime::WallNow())) {}

absl::Status Client::Translate(const grpc::Status& status) const {
  const absl::Status translated = runtime::FromGrpc(status);
  // An answer of the coordinator's own has a reason; what gRPC says of itself has none.
  const bool answered = !runtime::ReasonOf(translated).reason.empty();
  if (!answered && SpeaksHttp(status)) {
    return absl::UnavailableError("what answers at " + options_.server + " is no coordinator (" +
                                  status.error_message() + ")");
  }
  if (!answered && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return WithMessage(translated, "no coordinator answers at " + options_.server + " (" +
                                       status.error_message() + ")");
  }
  if (!answered && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return WithMessage(translated, "no answer from " + options_.server + " within " +
                                       SecondsText(options_.request_timeout));
  }
  return translated;
}

absl::Status Client::NothingCame(Duration limit) const {
  return absl::DeadlineExceededError("nothing came from " + options_.server + " within " +
                                     SecondsText(limit));
}

bool Client::MayRepeat(const absl::Status& status, const Call& call) {
  if (call.repeat == Repeat::kNo || !runtime::IsRetryable(status)) return false;
  if (call.attempts >= options_.attempts_max || budget_ < 1) return false;
  const Duration delay = runtime::BackoffDelay(options_.backoff, call.attempts, rng_);
  if (call.deadline != Instant::max() && runtime::Now() + delay >= call.deadline) return false;
  budget_ -= 1;
  if (cancellation_ == nullptr) {
    std::this_thread::sleep_for(delay);
  } else {
    cancellation_->Wait(delay);
  }
  return true;
}

absl::Status Client::Repeatedly(Call* call, const std::function<absl::Status()>& attempt) {
  while (true) {
    absl::Status status = attempt();
    ++call->attempts;
    if (status.ok()) budget_ = std::min(options_.retry_budget, budget_ + 0.1);
    if (status.ok() || !MayRepeat(status, *call)) return status;
  }
}

absl::Status Client::MakeUnary(Call* call,
                               const std::function<grpc::Status(grpc::ClientContext*)>& attempt) {
  call->deadline = runtime::Now() + call->timeout;
  return Repeatedly(call, [&] {
    grpc::ClientContext context;
    SetTimeout(call->deadline - runtime::Now(), &context);
    if (cancellation_ != nullptr) cancellation_->Add(&context);
    const grpc::Status ended = attempt(&context);
    if (cancellation_ != nullptr) cancellation_->Remove(&context);
    return ended.ok() ? absl::OkStatus() : Translate(ended);
  });
}

absl::StatusOr<v1::Job> Client::CreateJob(v1::CreateJobRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Make(*jobs_, &v1::Jobs::Stub::CreateJob, request);
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& name) {
  return GetJob(Named<v1::GetJobRequest>(name));
}

absl::StatusOr<v1::Job> Client::GetJob(const v1::GetJobRequest& request) {
  Call call = DefaultCall();
  if (!request.wait_for_change_after().empty()) call.timeout += kLongPoll;
  return Make(*jobs_, &v1::Jobs::Stub::GetJob, request, &call);
}

absl::StatusOr<v1::ListJobsResponse> Client::ListAllJobs(v1::ListJobsRequest request,
                                                         std::size_t count_max) {
  return AllPages<v1::ListJobsResponse>(
      std::move(request), count_max, 1000,
      [this](const v1::ListJobsRequest& page) { return ListJobs(page); },
      [](v1::ListJobsResponse* response) { return response->mutable_jobs(); });
}

absl::StatusOr<v1::Job> Client::UpdateJob(const v1::UpdateJobRequest& request) {
  Call call = DefaultCall();
  // Made but not answered, the change itself would have the repetition refused.
  if (!request.etag().empty()) call.repeat = Repeat::kNo;
  return Make(*jobs_, &v1::Jobs::Stub::UpdateJob, request, &call);
}

absl::StatusOr<v1::RevertDecisionResponse> Client::RevertDecision(
    v1::RevertDecisionRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Make(*jobs_, &v1::Jobs::Stub::RevertDecision, request);
}

absl::StatusOr<v1::ListRoundsResponse> Client::ListAllRounds(const std::string& name,
                                                             std::size_t count_max) {
  return ListAllRounds(Named<v1::ListRoundsRequest>(name), count_max);
}

absl::StatusOr<v1::ListRoundsResponse> Client::ListAllRounds(v1::ListRoundsRequest request,
                                                             std::size_t count_max) {
  v1::ListRoundsResponse last;  // whose groups are the newest
  absl::StatusOr<v1::ListRoundsResponse> all = AllPages<v1::ListRoundsResponse>(
      std::move(request), count_max, kRoundsAPage,
      [&](const v1::ListRoundsRequest& page) {
        absl::StatusOr<v1::ListRoundsResponse> answer = ListRounds(page);
        if (answer.ok()) last.mutable_groups()->Swap(answer->mutable_groups());
        return answer;
      },
      [](v1::ListRoundsResponse* response) { return response->mutable_rounds(); });
  if (all.ok()) all->mutable_groups()->Swap(last.mutable_groups());
  return all;
}

absl::StatusOr<v1::ListDecisionsResponse> Client::ListAllDecisions(const std::string& name,
                                                                   std::size_t count_max) {
  return AllPages<v1::ListDecisionsResponse>(
      Named<v1::ListDecisionsRequest>(name), count_max, 10'000,
      [this](const v1::ListDecisionsRequest& page) { return ListDecisions(page); },
      [](v1::ListDecisionsResponse* response) { return response->mutable_decisions(); });
}

absl::StatusOr<v1::ListNodesResponse> Client::ListAllNodes() {
  constexpr std::size_t kNodesMax = 1'000'000;
  return AllPages<v1::ListNodesResponse>(
      v1::ListNodesRequest(), kNodesMax, 1000,
      [this](const v1::ListNodesRequest& page) { return ListNodes(page); },
      [](v1::ListNodesResponse* response) { return response->mutable_nodes(); });
}

absl::StatusOr<v1::Blob> Client::GetBlob(const std::string& sha256) {
  v1::GetBlobRequest request;
  request.set_sha256(sha256);
  return Make(*artifacts_, &v1::Artifacts::Stub::GetBlob, request);
}

absl::StatusOr<v1::CreateTokenResponse> Client::CreateToken(const v1::CreateTokenRequest& request) {
  Call call = DefaultCall();
  call.repeat = Repeat::kNo;
  return Make(*enrolment_, &v1::Enrolment::Stub::CreateToken, request, &call);
}

absl::StatusOr<v1::CheckIntegrityResponse> Client::CheckIntegrity() {
  // A database of any size is looked through.
  Call call = DefaultCall();
  call.timeout = std::max(call.timeout, options_.stream_max);
  return Make(*admin_, &v1::Admin::Stub::CheckIntegrity, v1::CheckIntegrityRequest(), &call);
}

}  // namespace tactus::api
