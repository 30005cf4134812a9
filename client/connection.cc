#include "client/connection.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "client/text.h"
#include "client/yaml_tree.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

constexpr int kMessageBytesMax = 64 << 20;  // a page of 10,000 rounds with 1,000 workers each

bool IsHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string port = address.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  if (port.find_first_not_of("0123456789") != std::string::npos) return false;
  const int number = std::stoi(port);
  return number >= 1 && number <= 65535;
}

absl::StatusOr<std::string> ConfiguredServer(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::string();
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const YamlDocument document = ParseYaml(text);
  if (!document.error.empty()) return absl::InvalidArgumentError(path + ": " + document.error);
  for (const YamlEntry& entry : document.root.entries) {
    if (entry.key == "server") continue;
    return absl::InvalidArgumentError(path + ": " + Printable(entry.key) + ": unknown key (line " +
                                      std::to_string(entry.line) + "); allowed: server");
  }
  const YamlValue* server = FindYamlKey(document.root, "server");
  return server == nullptr ? std::string() : server->text;
}

absl::StatusOr<std::string> Checked(const std::string& source, const std::string& address) {
  if (IsHostPort(address)) return address;
  return absl::InvalidArgumentError(source + ": '" + Printable(address) +
                                    "' is not an address; allowed: HOST:PORT, such as " +
                                    kServerDefault);
}

std::shared_ptr<grpc::Channel> NewChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

absl::StatusOr<std::string> ServerAddress(const ServerSources& sources) {
  if (!sources.flag.empty()) return Checked("--server", sources.flag);
  if (!sources.environment.empty()) return Checked("TACTUS_SERVER", sources.environment);
  const absl::StatusOr<std::string> configured = ConfiguredServer(sources.config_path);
  if (!configured.ok()) return configured.status();
  if (!configured->empty()) return Checked(sources.config_path + ": server", *configured);
  return std::string(kServerDefault);
}

Connection::Connection(const ConnectionOptions& options)
    : Connection(options, NewChannel(options.server)) {}

Connection::Connection(const ConnectionOptions& options,
                       const std::shared_ptr<grpc::Channel>& channel)
    : options_(options), jobs_(v1::Jobs::NewStub(channel)), nodes_(v1::Nodes::NewStub(channel)) {}

std::unique_ptr<grpc::ClientContext> Connection::NewContext(Duration timeout) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(timeout));
  return context;
}

absl::Status Connection::Translate(const grpc::Status& status) const {
  const absl::Status translated = runtime::FromGrpc(status);
  const std::string said = Printable(status.error_message());
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError("no coordinator answers at " + options_.server + " (" + said +
                                  "); start tactus-coordinator, or give its address with --server "
                                  "or TACTUS_SERVER");
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError("no answer from " + options_.server + " within " +
                                       FormatSpan(options_.request_timeout) +
                                       "; --request-timeout gives it longer");
  }
  return translated;
}

template <typename Response, typename Stub, typename Method, typename Request>
absl::StatusOr<Response> Connection::Call(Stub& stub, Method method, const Request& request) const {
  const auto context = NewContext(options_.request_timeout);
  Response response;
  const grpc::Status status = (stub.*method)(context.get(), request, &response);
  if (!status.ok()) return Translate(status);
  return response;
}

absl::StatusOr<v1::Job> Connection::CreateJob(const v1::CreateJobRequest& request) {
  return Call<v1::Job>(*jobs_, &v1::Jobs::Stub::CreateJob, request);
}

absl::StatusOr<v1::Job> Connection::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return Call<v1::Job>(*jobs_, &v1::Jobs::Stub::GetJob, request);
}

absl::StatusOr<v1::Job> Connection::CancelJob(const v1::CancelJobRequest& request) {
  return Call<v1::Job>(*jobs_, &v1::Jobs::Stub::CancelJob, request);
}

absl::StatusOr<v1::ListJobsResponse> Connection::ListJobs(std::size_t count_max) {
  v1::ListJobsRequest request;
  v1::ListJobsResponse all;
  while (static_cast<std::size_t>(all.jobs_size()) < count_max) {
    const std::size_t left = count_max - static_cast<std::size_t>(all.jobs_size());
    request.set_page_size(static_cast<int>(std::min<std::size_t>(left, 1000)));
    const auto page = Call<v1::ListJobsResponse>(*jobs_, &v1::Jobs::Stub::ListJobs, request);
    if (!page.ok()) return page.status();
    all.mutable_jobs()->MergeFrom(page->jobs());
    if (page->next_page_token().empty() || page->jobs_size() == 0) break;
    request.set_page_token(page->next_page_token());
  }
  return all;
}

absl::StatusOr<v1::ListRoundsResponse> Connection::ListRounds(const std::string& name,
                                                              std::size_t count_max) {
  v1::ListRoundsRequest request;
  request.set_name(name);
  v1::ListRoundsResponse all;
  while (static_cast<std::size_t>(all.rounds_size()) < count_max) {
    const std::size_t left = count_max - static_cast<std::size_t>(all.rounds_size());
    request.set_page_size(static_cast<int>(std::min<std::size_t>(left, 10'000)));
    const auto page = Call<v1::ListRoundsResponse>(*jobs_, &v1::Jobs::Stub::ListRounds, request);
    if (!page.ok()) return page.status();
    all.mutable_rounds()->MergeFrom(page->rounds());
    if (page->next_page_token().empty() || page->rounds_size() == 0) break;
    request.set_page_token(page->next_page_token());
  }
  return all;
}

absl::StatusOr<v1::ListDecisionsResponse> Connection::ListDecisions(const std::string& name,
                                                                    std::size_t count_max) {
  v1::ListDecisionsRequest request;
  request.set_name(name);
  v1::ListDecisionsResponse all;
  while (static_cast<std::size_t>(all.decisions_size()) < count_max) {
    const std::size_t left = count_max - static_cast<std::size_t>(all.decisions_size());
    request.set_page_size(static_cast<int>(std::min<std::size_t>(left, 10'000)));
    const auto page =
        Call<v1::ListDecisionsResponse>(*jobs_, &v1::Jobs::Stub::ListDecisions, request);
    if (!page.ok()) return page.status();
    all.mutable_decisions()->MergeFrom(page->decisions());
    if (page->next_page_token().empty() || page->decisions_size() == 0) break;
    request.set_page_token(page->next_page_token());
  }
  return all;
}

absl::StatusOr<v1::ListNodesResponse> Connection::ListNodes() {
  v1::ListNodesRequest request;
  v1::ListNodesResponse all;
  constexpr int kPagesMax = 1000;
  for (int i = 0; i < kPagesMax; ++i) {
    const auto page = Call<v1::ListNodesResponse>(*nodes_, &v1::Nodes::Stub::ListNodes, request);
    if (!page.ok()) return page.status();
    all.mutable_nodes()->MergeFrom(page->nodes());
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  return all;
}

absl::Status Connection::DownloadArtifact(const v1::DownloadArtifactRequest& request,
                                          std::uint64_t size_bytes,
                                          const std::function<bool(const std::string&)>& write) {
  const double mebibytes = static_cast<double>(size_bytes) / (1 << 20);
  const auto context = NewContext(options_.request_timeout + Seconds(std::min(mebibytes, 1e6)));
  const auto reader = jobs_->DownloadArtifact(context.get(), request);
  v1::ArtifactChunk chunk;
  bool wanted = true;
  while (wanted && reader->Read(&chunk)) wanted = write(chunk.data());
  if (!wanted) context->TryCancel();
  const grpc::Status status = reader->Finish();
  if (!wanted) return absl::AbortedError("the download was ended");
  return status.ok() ? absl::OkStatus() : Translate(status);
}

std::vector<std::string> ErrorLines(const absl::Status& status, const std::string& subject) {
  const std::string prefix = subject.empty() ? "" : subject + ": ";
  std::vector<std::string> lines;
  for (const runtime::FieldViolation& violation : runtime::FieldViolations(status)) {
    const std::string field = violation.field.empty() ? "" : violation.field + ": ";
    lines.push_back(prefix + Printable(field + violation.description));
  }
  if (lines.empty()) lines.push_back(prefix + Printable(std::string(status.message())));
  return lines;
}

}  // namespace tactus::client
