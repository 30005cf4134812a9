// `tactus top`: the fleet, once or live.
#include <signal.h>

#include <string>

#include "client/error_lines.h"
#include "client/event_loop.h"
#include "client/full_screen.h"
#include "client/live_jobs.h"
#include "client/top_view.h"
#include "client/verbs.h"

namespace tactus::client {
namespace {

constexpr Duration kRefresh = Seconds(1);

absl::StatusOr<std::string> FetchText(api::Client& client, bool colour) {
  const auto jobs = FetchLiveJobs(client);
  if (!jobs.ok()) return jobs.status();
  const auto nodes = client.ListAllNodes();
  if (!nodes.ok()) return nodes.status();
  return TopText(*jobs, *nodes, colour);
}

// Goes on until a key or a signal ends it; a coordinator that is away comes back meanwhile.
ExitCode Live(std::string text, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM, SIGHUP});
  bool quit = false;
  std::string shown;
  FrameSize size{};
  const auto is_quit = [&quit] { return quit; };
  FullScreen* terminal = nullptr;
  const auto draw = [&] {
    const FrameSize now = terminal->size();
    if (text == shown && now.rows == size.rows && now.columns == size.columns) return;
    terminal->Show(Frame(text, now));
    shown = text;
    size = now;
  };
  FullScreen full(
      loop, {.key = [&](char key) { quit = quit || key == 'q' || key == 'Q'; }, .resized = draw});
  terminal = &full;
  while (true) {
    draw();
    const EventLoop::Outcome outcome = loop.RunUntil(is_quit, kRefresh);
    if (outcome == EventLoop::Outcome::kDone) return ExitCode::kOk;
    if (outcome == EventLoop::Outcome::kInterrupted) return ExitCode::kInterrupted;
    const absl::StatusOr<std::string> fetched = FetchText(client, screen.has_colour());
    if (fetched.ok()) {
      text = *fetched;
    } else {
      text.clear();
      for (const std::string& line : ErrorLines(fetched.status(), "")) text += line + "\n";
      text += "trying again; q ends it\n";
    }
  }
}

}  // namespace

ExitCode Top(const TopCommand& command, api::Client& client, const Screen& screen) {
  const absl::StatusOr<std::string> text = FetchText(client, screen.has_colour());
  if (!text.ok()) return ReportError(text.status(), screen);
  if (screen.is_terminal() && !command.once) return Live(*text, client, screen);
  screen.Print(*text);
  return ExitCode::kOk;
}

}  // namespace tactus::client
