#include "coordinator/page/page.h"

#include <string>
#include <utility>

#include "coordinator/page/static_files.h"

namespace tactus::page {
namespace {

using runtime::HttpRequest;
using runtime::HttpResponse;

// Ends a future when the last copy goes.
std::shared_ptr<void> TokenOf(std::future<void>& all_gone) {
  auto promise = std::make_shared<std::promise<void>>();
  all_gone = promise->get_future();
  return {promise.get(), [promise](void*) { promise->set_value(); }};
}

// Equal for equal questions: a request's names are in order.
std::string Question(const HttpRequest& request) {
  std::string question = request.path;
  for (const auto& [name, value] : request.query) question += "\n" + name + "=" + value;
  return question;
}

}  // namespace

Page::Page(runtime::HttpServer& server, const std::shared_ptr<grpc::Channel>& channel)
    : server_(server),
      token_(TokenOf(all_calls_ended_)),
      calls_(channel, token_),
      answers_(server),
      feeds_(server, calls_.jobs()) {
  RouteFiles();
  RouteApi("/api/jobs", &ApiCalls::ListJobs);
  RouteApi("/api/job", &ApiCalls::GetJob);
  RouteApi("/api/rounds", &ApiCalls::ListRounds);
  RouteApi("/api/validations", &ApiCalls::ListValidations);
  RouteApi("/api/decisions", &ApiCalls::ListDecisions);
  RouteApi("/api/logs", &ApiCalls::ReadLogs);
  RouteApi("/api/nodes", &ApiCalls::ListNodes);
  RouteEvents();
}

Page::~Page() { Close(); }

void Page::Close() {
  if (token_ == nullptr) return;
  feeds_.Close();
  token_.reset();
  all_calls_ended_.wait();
}

void Page::RouteFiles() {
  for (const StaticFile& file : StaticFiles()) {
    const auto answer = [&file](const HttpRequest&) {
      return HttpResponse{.content_type = file.content_type, .body = file.content};
    };
    server_.Route(file.path, answer);
    if (file.path == "/index.html") server_.Route("/", answer);
  }
}

void Page::RouteApi(const std::string& path, Method method) {
  server_.RouteLater(path,
                     [this, method](const HttpRequest& request, runtime::HttpServer::Reply reply) {
                       const absl::StatusOr<Answers::Ask> ask = (calls_.*method)(request);
                       if (!ask.ok()) return reply(FromStatus(ask.status()));
                       answers_.Answer(Question(request), *ask, std::move(reply));
                     });
}

void Page::RouteEvents() {
  server_.RouteStream(
      "/events",
      [this](const HttpRequest& request,
             const std::shared_ptr<runtime::HttpStream>& stream) -> std::optional<HttpResponse> {
        const absl::StatusOr<std::string> job = JobOf(request);
        if (!job.ok()) return FromStatus(job.status());
        return feeds_.Join(*job, token_, stream);
      });
}

}  // namespace tactus::page
