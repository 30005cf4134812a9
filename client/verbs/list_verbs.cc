// `tactus get`: what there is, once or again and again.
#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/observe/event_loop.h"
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/verbs/verbs.h"

namespace tactus::client {
namespace {

constexpr Duration kListRefresh = Seconds(1);

template <typename Message>
ExitCode Show(const absl::StatusOr<Message>& answer, OutputFormat format, const Screen& screen) {
  if (!answer.ok()) return ReportError(answer.status(), screen);
  screen.Print(Render(*answer, {format, screen.has_colour()}));
  return ExitCode::kOk;
}

absl::StatusOr<v1::ListJobsResponse> FetchJobs(const GetCommand& command, api::Client& client) {
  v1::ListJobsRequest request;
  request.set_filter(command.filter);
  request.set_order_by(command.order_by);
  return client.ListAllJobs(request, command.count_max);
}

// Calls `show` every second until a signal comes or it returns another code than kOk.
ExitCode Repeat(const std::function<ExitCode()>& show) {
  EventLoop loop({SIGINT, SIGTERM});
  while (true) {
    if (const ExitCode code = show(); code != ExitCode::kOk) return code;
    const auto outcome = loop.RunUntil([] { return false; }, kListRefresh);
    if (outcome == EventLoop::Outcome::kInterrupted) return ExitCode::kInterrupted;
  }
}

// What changed since it was last shown: lines of a table, or messages, one a line.
class Changes {
 public:
  explicit Changes(const Screen& screen) : screen_(screen) {}

  template <typename List, typename Items>
  void Show(const List& list, const Items& items, OutputFormat format) {
    if (format == OutputFormat::kJson) {
      for (const auto& item : items) ShowNew(item.name(), JsonLine(item) + "\n");
    } else if (format == OutputFormat::kYaml) {
      for (const auto& item : items) {
        ShowNew(item.name(), "---\n" + Render(item, OutputFormat::kYaml));
      }
    } else {
      ShowTable(Render(list, {format, screen_.has_colour()}));
    }
  }

 private:
  void ShowNew(const std::string& key, const std::string& text) {
    std::string& shown = shown_[key];
    if (shown == text) return;
    shown = text;
    screen_.Print(text);
  }

  // Lines that were not in the last table. The head is in all of them.
  void ShowTable(const std::string& table) {
    std::istringstream in(table);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (const std::string& line : lines) {
      if (std::ranges::find(lines_, line) == lines_.end()) screen_.Print(line + "\n");
    }
    lines_ = std::move(lines);
  }

  const Screen& screen_;
  std::map<std::string, std::string> shown_;  // by name
  std::vector<std::string> lines_;
};

ExitCode WatchList(const GetCommand& command, api::Client& client, const Screen& screen) {
  Changes changes(screen);
  return Repeat([&] {
    if (command.noun == GetCommand::Noun::kNodes) {
      const auto nodes = client.ListAllNodes();
      if (!nodes.ok()) return ReportError(nodes.status(), screen);
      changes.Show(*nodes, nodes->nodes(), *command.output);
      return ExitCode::kOk;
    }
    const auto jobs = FetchJobs(command, client);
    if (!jobs.ok()) return ReportError(jobs.status(), screen);
    changes.Show(*jobs, jobs->jobs(), *command.output);
    return ExitCode::kOk;
  });
}

}  // namespace

ExitCode Get(const GetCommand& command, api::Client& client, const Screen& screen) {
  if (command.watch) return WatchList(command, client, screen);
  const OutputFormat format = *command.output;
  switch (command.noun) {
    case GetCommand::Noun::kJobs:
      return Show(FetchJobs(command, client), format, screen);
    case GetCommand::Noun::kJob:
      return Show(client.GetJob(command.name), format, screen);
    case GetCommand::Noun::kNodes:
      return Show(client.ListAllNodes(), format, screen);
    case GetCommand::Noun::kNode:
      return Show(client.GetNode(command.name), format, screen);
    case GetCommand::Noun::kDecisions:
      return Show(client.ListAllDecisions(command.name, command.count_max), format, screen);
    case GetCommand::Noun::kRounds:
      break;
  }
  return Show(client.ListAllRounds(command.name, command.count_max), format, screen);
}

}  // namespace tactus::client
