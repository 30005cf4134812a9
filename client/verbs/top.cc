// `tactus top`: the fleet, once or live.
#include <signal.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "client/api/cancellation.h"
#include "client/observe/event_loop.h"
#include "client/observe/full_screen.h"
#include "client/observe/live_jobs.h"
#include "client/observe/top_view.h"
#include "client/render/error_lines.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

constexpr Duration kTopRefresh = Seconds(1);

absl::StatusOr<std::string> FetchText(api::Client& client, bool colour) {
  const auto jobs = FetchLiveJobs(client);
  if (!jobs.ok()) return jobs.status();
  const auto nodes = client.ListAllNodes();
  if (!nodes.ok()) return nodes.status();
  return TopText(*jobs, *nodes, colour);
}

// What there is to show, again and again, in a thread of its own: a coordinator that does not
// answer must not keep keys and signals waiting. The client is its alone meanwhile. `take` is
// called in the loop's thread, which runs no handler any more when this has ended.
class Refresh {
 public:
  Refresh(api::Client& client, EventLoop& loop, bool colour, std::function<void(std::string)> take)
      : client_(client), take_(std::move(take)) {
    client_.EndCallsWith(&cancellation_);
    thread_ = std::thread([this, colour, &loop] {
      while (true) {
        cancellation_.Wait(kTopRefresh);
        std::string text = NextText(colour);
        if (cancellation_.cancelled()) return;
        boost::asio::post(loop.context(),
                          [this, text = std::move(text)]() mutable { take_(std::move(text)); });
      }
    });
  }
  ~Refresh() {
    cancellation_.Cancel();
    thread_.join();
    client_.EndCallsWith(nullptr);
  }
  Refresh(const Refresh&) = delete;
  Refresh& operator=(const Refresh&) = delete;

 private:
  std::string NextText(bool colour) {
    const absl::StatusOr<std::string> fetched = FetchText(client_, colour);
    if (fetched.ok()) return *fetched;
    std::string text;
    for (const std::string& line : ErrorLines(fetched.status(), "")) text += line + "\n";
    return text + "trying again; q ends it\n";
  }

  api::Client& client_;
  const std::function<void(std::string)> take_;
  api::Cancellation cancellation_;
  std::thread thread_;
};

// Goes on until a key or a signal ends it; a coordinator that is away comes back meanwhile.
ExitCode Live(const std::string& text, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  bool quit = false;
  FullScreen terminal(loop, [&](char key) { quit = quit || key == 'q' || key == 'Q'; });
  terminal.Show(text);
  const Refresh refresh(client, loop, screen.has_colour(),
                        [&](std::string next) { terminal.Show(std::move(next)); });
  const EventLoop::Outcome outcome = loop.RunUntil([&quit] { return quit; }, EventLoop::kForever);
  return outcome == EventLoop::Outcome::kDone ? ExitCode::kOk : ExitCode::kInterrupted;
}

class TopVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "top",
                             "Show nodes, devices and the jobs that are not over, live on a "
                             "terminal; q or Ctrl-C ends it");
    verb->add_flag("--once", once_, "Print it once, as where there is no terminal");
  }
  ExitCode Run(const Means& means) override {
    const Screen& screen = means.screen;
    const absl::StatusOr<std::string> text = FetchText(*means.client, screen.has_colour());
    if (!text.ok()) return ReportError(text.status(), screen);
    if (screen.is_terminal() && !once_) return Live(*text, *means.client, screen);
    screen.Print(*text);
    return ExitCode::kOk;
  }

 private:
  bool once_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeTop() { return std::make_unique<TopVerb>(); }

}  // namespace tactus::client
