#include "coordinator/page/api_calls.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/strings/numbers.h"
#include "runtime/status.h"

namespace tactus::page {
namespace {

using runtime::HttpRequest;
using runtime::HttpResponse;

constexpr auto kDeadline = std::chrono::seconds(10);
constexpr std::size_t kJobIdBytesMax = 128;
constexpr std::size_t kTextBytesMax = 1024;  // of a filter or a page token
// Rounds of more workers come without the numbers of each: no screen shows them.
constexpr int kWorkersMax = 256;
constexpr std::size_t kLogBytesMax = 256 << 10;

HttpResponse Json(std::string body) {
  return {.content_type = "application/json", .body = std::move(body)};
}

// Errors: InvalidArgument, the query has another name.
absl::Status AllowNames(const HttpRequest& request, std::initializer_list<const char*> names) {
  for (const auto& [name, value] : request.query) {
    bool known = false;
    for (const char* allowed : names) known = known || name == allowed;
    if (!known) return absl::InvalidArgumentError("query: there is no \"" + name + "\" here");
    if (value.size() > kTextBytesMax) {
      return absl::InvalidArgumentError(name + ": longer than " + std::to_string(kTextBytesMax) +
                                        " bytes");
    }
  }
  return absl::OkStatus();
}

std::string Text(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

struct Range {
  int standard = 0;
  int max = 0;
};

// Errors: InvalidArgument, no number of 1 to range.max.
absl::StatusOr<int> Number(const HttpRequest& request, const std::string& name,
                           const Range& range) {
  const std::string text = Text(request, name);
  if (text.empty()) return range.standard;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const int value = digits && text.size() <= 6 ? std::stoi(text) : 0;
  if (value >= 1 && value <= range.max) return value;
  return absl::InvalidArgumentError(name + ": found \"" + text + "\", allowed is 1 to " +
                                    std::to_string(range.max));
}

// What lives as long as a call.
template <typename Request, typename Response>
struct Call {
  std::shared_ptr<void> token;
  grpc::ClientContext context = {};
  Request request = {};
  Response response = {};
};

// Asks `method` of a stub's asynchronous half; `shorten` takes out of the answer what no page
// reads.
template <typename Stub, typename Request, typename Response, typename Async>
Answers::Ask AskUnary(const std::shared_ptr<Stub>& stub, const std::weak_ptr<void>& token,
                      void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                            std::function<void(grpc::Status)>),
                      const Request& request, void (*shorten)(Response&) = nullptr) {
  return [stub, token, method, request, shorten](Answers::Give give) {
    auto call = std::make_shared<Call<Request, Response>>();
    call->token = token.lock();
    call->request = request;
    call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    auto* const raw = call.get();
    (stub->async()->*method)(
        &raw->context, &raw->request, &raw->response,
        [call = std::move(call), shorten, give = std::move(give)](const grpc::Status& status) {
          if (!status.ok()) return give(FromStatus(runtime::FromGrpc(status)));
          if (shorten != nullptr) shorten(call->response);
          give(Json(ToJson(call->response)));
        });
  };
}

void ShortenRounds(v1::ListRoundsResponse& rounds) {
  rounds.clear_groups();
  for (v1::Round& round : *rounds.mutable_rounds()) {
    round.clear_worker_compute_seconds();
    round.clear_worker_blocked_seconds();
    round.clear_worker_update_seconds();
    if (round.worker_samples_size() > kWorkersMax) round.clear_worker_samples();
  }
}

// Collects what the workers wrote, up to kLogBytesMax: the page asks on behind the last entry.
class LogReading final : public grpc::ClientReadReactor<v1::LogEntry> {
 public:
  LogReading(v1::Jobs::Stub& jobs, std::shared_ptr<void> token, Answers::Give give)
      : token_(std::move(token)), give_(std::move(give)), jobs_(jobs) {}

  // The reading owns itself until it is done.
  void Start(const v1::StreamLogsRequest& request) {
    request_ = request;
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
    jobs_.async()->StreamLogs(&context_, &request_, this);
    StartRead(&entry_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    bytes_ += entry_.text().size();
    json_ += (json_.empty() ? "" : ",") + ToJson(entry_);
    full_ = bytes_ >= kLogBytesMax;
    if (full_) return context_.TryCancel();
    StartRead(&entry_);
  }

  void OnDone(const grpc::Status& status) override {
    if (status.ok() || full_) {
      give_(Json("{\"entries\":[" + json_ + "],\"more\":" + (full_ ? "true" : "false") + "}"));
    } else {
      give_(FromStatus(runtime::FromGrpc(status)));
    }
    delete this;
  }

 private:
  const std::shared_ptr<void> token_;  // first: what is below goes before it
  const Answers::Give give_;
  v1::Jobs::Stub& jobs_;
  grpc::ClientContext context_;
  v1::StreamLogsRequest request_;
  v1::LogEntry entry_;
  std::string json_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // Only messages with Any in them can fail.
  return google::protobuf::util::MessageToJsonString(message, &json, options).ok() ? json : "{}";
}

HttpResponse FromStatus(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return runtime::PlainLine(400, message);
    case absl::StatusCode::kNotFound:
      return runtime::PlainLine(404, message);
    case absl::StatusCode::kDeadlineExceeded:
      return runtime::PlainLine(504, "the coordinator did not answer in time");
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
      return runtime::PlainLine(503, message);
    default:
      return runtime::PlainLine(500, message);
  }
}

absl::StatusOr<std::string> JobOf(const HttpRequest& request) {
  constexpr std::string_view kPrefix = "projects/default/jobs/";
  std::string id = Text(request, "job");
  if (id.starts_with(kPrefix)) id = id.substr(kPrefix.size());
  const bool right = !id.empty() && id.size() <= kJobIdBytesMax &&
                     id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == id.npos;
  if (right) return id;
  return absl::InvalidArgumentError("job: allowed is the id of a job, of a-z, 0-9 and -");
}

ApiCalls::ApiCalls(const std::shared_ptr<grpc::Channel>& channel, std::weak_ptr<void> token)
    : jobs_(v1::Jobs::NewStub(channel)),
      nodes_(v1::Nodes::NewStub(channel)),
      token_(std::move(token)) {}

absl::StatusOr<Answers::Ask> ApiCalls::ListJobs(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"page_size", "page_token", "filter"});
  if (!names.ok()) return names;
  const absl::StatusOr<int> size = Number(request, "page_size", {.standard = 50, .max = 200});
  if (!size.ok()) return size.status();
  v1::ListJobsRequest list;
  list.set_page_size(*size);
  list.set_page_token(Text(request, "page_token"));
  list.set_filter(Text(request, "filter"));
  list.set_order_by("create_time desc");
  return AskUnary<v1::Jobs::Stub, v1::ListJobsRequest, v1::ListJobsResponse>(
      jobs_, token_, &v1::Jobs::Stub::async::ListJobs, list);
}

absl::StatusOr<Answers::Ask> ApiCalls::GetJob(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"job"});
  if (!names.ok()) return names;
  const absl::StatusOr<std::string> job = JobOf(request);
  if (!job.ok()) return job.status();
  v1::GetJobRequest get;
  get.set_name(*job);
  return AskUnary<v1::Jobs::Stub, v1::GetJobRequest, v1::Job>(jobs_, token_,
                                                              &v1::Jobs::Stub::async::GetJob, get);
}

absl::StatusOr<Answers::Ask> ApiCalls::ListRounds(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"job", "points", "first_round"});
  if (!names.ok()) return names;
  const absl::StatusOr<std::string> job = JobOf(request);
  if (!job.ok()) return job.status();
  const absl::StatusOr<int> points = Number(request, "points", {.standard = 600, .max = 1000});
  if (!points.ok()) return points.status();
  const std::string first = Text(request, "first_round");
  std::uint64_t first_round = 0;
  if (!first.empty() && !absl::SimpleAtoi(first, &first_round)) {
    return absl::InvalidArgumentError("first_round: found \"" + first + "\", allowed is a number");
  }
  v1::ListRoundsRequest list;
  list.set_name(*job);
  list.set_points_max(*points);
  list.set_first_round(first_round);
  return AskUnary<v1::Jobs::Stub, v1::ListRoundsRequest, v1::ListRoundsResponse>(
      jobs_, token_, &v1::Jobs::Stub::async::ListRounds, list, ShortenRounds);
}

absl::StatusOr<Answers::Ask> ApiCalls::ListValidations(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"job"});
  if (!names.ok()) return names;
  const absl::StatusOr<std::string> job = JobOf(request);
  if (!job.ok()) return job.status();
  v1::ListValidationsRequest list;
  list.set_name(*job);
  return AskUnary<v1::Jobs::Stub, v1::ListValidationsRequest, v1::ListValidationsResponse>(
      jobs_, token_, &v1::Jobs::Stub::async::ListValidations, list);
}

absl::StatusOr<Answers::Ask> ApiCalls::ListDecisions(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"job", "newest"});
  if (!names.ok()) return names;
  const absl::StatusOr<std::string> job = JobOf(request);
  if (!job.ok()) return job.status();
  const absl::StatusOr<int> newest = Number(request, "newest", {.standard = 500, .max = 1000});
  if (!newest.ok()) return newest.status();
  v1::ListDecisionsRequest list;
  list.set_name(*job);
  list.set_newest(*newest);
  return AskUnary<v1::Jobs::Stub, v1::ListDecisionsRequest, v1::ListDecisionsResponse>(
      jobs_, token_, &v1::Jobs::Stub::async::ListDecisions, list);
}

absl::StatusOr<Answers::Ask> ApiCalls::ReadLogs(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"job", "tail", "resume_token"});
  if (!names.ok()) return names;
  const absl::StatusOr<std::string> job = JobOf(request);
  if (!job.ok()) return job.status();
  const absl::StatusOr<int> tail = Number(request, "tail", {.standard = 100, .max = 1000});
  if (!tail.ok()) return tail.status();
  v1::StreamLogsRequest read;
  read.set_name(*job);
  read.set_resume_token(Text(request, "resume_token"));
  if (read.resume_token().empty()) read.set_tail_lines(static_cast<std::uint32_t>(*tail));
  return [jobs = jobs_, token = token_, read](Answers::Give give) {
    (new LogReading(*jobs, token.lock(), std::move(give)))->Start(read);
  };
}

absl::StatusOr<Answers::Ask> ApiCalls::ListNodes(const HttpRequest& request) const {
  const absl::Status names = AllowNames(request, {"page_size", "page_token"});
  if (!names.ok()) return names;
  const absl::StatusOr<int> size = Number(request, "page_size", {.standard = 200, .max = 1000});
  if (!size.ok()) return size.status();
  v1::ListNodesRequest list;
  list.set_page_size(*size);
  list.set_page_token(Text(request, "page_token"));
  return AskUnary<v1::Nodes::Stub, v1::ListNodesRequest, v1::ListNodesResponse>(
      nodes_, token_, &v1::Nodes::Stub::async::ListNodes, list);
}

}  // namespace tactus::page
