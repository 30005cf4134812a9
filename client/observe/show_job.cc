#include "client/observe/show_job.h"

#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

ProgressViewOptions ViewOptions(const Screen& screen, bool json) {
  using Style = ProgressViewOptions::Style;
  const Style style = json ? Style::kJson : screen.is_terminal() ? Style::kBlock : Style::kLines;
  return {.style = style, .colour = screen.has_colour()};
}

}  // namespace

Followed ShowJob(api::Client& client, EventLoop& loop, const Screen& screen,
                 const ShowJobOptions& options) {
  ProgressView view(ViewOptions(screen, options.json));
  const FollowHandlers handlers = {
      .event =
          [&](const v1::JobEvent& event) {
            screen.Print(view.Show(event, runtime::Now(), screen.columns()));
          },
      .say =
          [&](const std::string& message) {
            view.Leave();
            screen.Say(message);
          },
      .stop = options.stop};
  return Follow(client, loop, options.name, handlers);
}

ExitCode ReportEnd(const v1::Job& job, const Screen& screen, const std::string& subject) {
  if (job.state() == v1::JOB_STATE_SUCCEEDED) return ExitCode::kOk;
  std::string text = subject.empty() ? "" : subject + ": ";
  if (!job.error_field().empty()) text += Printable(job.error_field()) + ": ";
  const std::string reason =
      job.state_reason().empty() ? "no reason was given" : job.state_reason();
  screen.Say(text + Printable(reason));
  screen.Say("job " + Printable(ShortName(job.name())) + " " + StateName(job.state()));
  return ExitCode::kJobFailed;
}

}  // namespace tactus::client
