// The status page: files, JSON and event streams, at the coordinator's HTTP server. It reads the
// public API and nothing else, and changes nothing.

#pragma once

#include <future>
#include <memory>

#include "coordinator/page/answers.h"
#include "coordinator/page/api_calls.h"
#include "coordinator/page/job_feeds.h"
#include "runtime/http_server.h"

namespace tactus::page {

// Paths: / and the files of static/; /api/jobs, /api/job, /api/rounds, /api/decisions, /api/logs
// and /api/nodes, GET calls of the API's methods with the answer as JSON; /events?job=ID, a job's
// events. A refusal is a plain line.
class Page {
 public:
  // Sets the routes of `server`, which is not started yet and outlives the page. `channel` leads to
  // the coordinator's API.
  Page(runtime::HttpServer& server, const std::shared_ptr<grpc::Channel>& channel);
  ~Page();  // Close()

  // Waits for the calls that are under way. Once the server has stopped, and the API ends its
  // calls; the second call does nothing.
  void Close();

 private:
  using Method = absl::StatusOr<Answers::Ask> (ApiCalls::*)(const runtime::HttpRequest&) const;

  void RouteFiles();
  void RouteApi(const std::string& path, Method method);
  void RouteEvents();

  runtime::HttpServer& server_;
  std::future<void> all_calls_ended_;
  std::shared_ptr<void> token_;  // shared with each call under way; the last one tells the future
  ApiCalls calls_;
  Answers answers_;
  JobFeeds feeds_;
};

}  // namespace tactus::page
