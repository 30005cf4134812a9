// `tactus trace` and `tactus plot`: what a job's history looks like.
#include <algorithm>
#include <cstdint>
#include <string>

#include "client/error_lines.h"
#include "client/job_plot.h"
#include "client/job_trace.h"
#include "client/text.h"
#include "client/verbs.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr std::size_t kDecisionsMax = 100'000;
constexpr int kPlotPageRounds = 1000;
constexpr std::uint64_t kRoundsShown = 200;  // where no range is given

// The first and the last round that are asked for, of a job that applied `applied` >= 1.
struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

Span SpanOf(const RoundRange& range, std::uint64_t applied) {
  const std::uint64_t last = std::min(range.last.value_or(applied - 1), applied - 1);
  const std::uint64_t shown = std::min(last, kRoundsShown - 1);
  return {.first = range.first.value_or(range.last ? 0 : last - shown), .last = last};
}

std::string Words(const Span& span) {
  return "rounds " + std::to_string(span.first) + " to " + std::to_string(span.last);
}

// What cannot be shown; empty: it can.
std::string WhyNot(const RoundRange& range, const v1::Job& job) {
  const std::string subject = "job " + Printable(ShortName(job.name()));
  const std::uint64_t applied = job.progress().rounds();
  if (applied == 0) return subject + " has applied no round yet";
  if (range.first && *range.first >= applied) {
    return subject + ": found round " + std::to_string(*range.first) + ", its last one is " +
           std::to_string(applied - 1);
  }
  return "";
}

ExitCode PrintTrace(const v1::Job& job, const Span& span, v1::ListRoundsResponse rounds,
                    api::Client& client, const Screen& screen) {
  const auto decisions = client.ListAllDecisions(job.name(), kDecisionsMax);
  if (!decisions.ok()) return ReportError(decisions.status(), screen);
  const auto behind = std::ranges::find_if(
      rounds.rounds(), [&](const v1::Round& round) { return round.round() > span.last; });
  rounds.mutable_rounds()->erase(behind, rounds.rounds().end());
  if (rounds.rounds().empty()) {
    screen.Say("job " + Printable(ShortName(job.name())) + ": " + Words(span) +
               " are not on record any more: of long jobs older rounds are thinned");
    return ExitCode::kNotFound;
  }
  const JobTrace trace = TraceJob(job, rounds, *decisions);
  screen.Print(trace.text);
  const Span shown{.first = rounds.rounds().begin()->round(),
                   .last = rounds.rounds().rbegin()->round()};
  if (shown.first != span.first || shown.last != span.last) {
    screen.Say(Words(shown) + " of " + Words(span) + " are on record");
  }
  screen.Say(trace.remarks);
  return ExitCode::kOk;
}

// What is drawn is for programs to show.
bool RefuseTerminal(const Screen& screen) {
  if (!screen.is_terminal()) return false;
  screen.Say("standard output is a terminal; allowed is a file: ... > FILE");
  return true;
}

// Page by page: a long job's rounds together need not fit into memory.
absl::Status AddRounds(const std::string& name, api::Client& client, JobPlot& plot) {
  v1::ListRoundsRequest request;
  request.set_name(name);
  request.set_page_size(kPlotPageRounds);
  do {
    const absl::StatusOr<v1::ListRoundsResponse> page = client.ListRounds(request);
    if (!page.ok()) return page.status();
    for (const v1::Round& round : page->rounds()) plot.Add(round);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

}  // namespace

ExitCode DrawPlot(const PlotCommand& command, api::Client& client, const Screen& screen) {
  if (command.file.empty() && RefuseTerminal(screen)) return ExitCode::kUsage;
  const absl::StatusOr<v1::Job> job = client.GetJob(command.name);
  if (!job.ok()) return ReportError(job.status(), screen);
  const std::string name = ShortName(job->name());
  JobPlot plot(command.axis);
  if (absl::Status status = AddRounds(job->name(), client, plot); !status.ok()) {
    return ReportError(status, screen);
  }
  if (plot.rounds() == 0) {
    screen.Say("job " + Printable(name) + " has no round on record yet");
    return ExitCode::kNotFound;
  }
  const auto decisions = client.ListAllDecisions(job->name(), kDecisionsMax);
  if (!decisions.ok()) return ReportError(decisions.status(), screen);
  const std::string svg = DrawSvg(plot.Finish(name, *decisions));
  if (command.file.empty()) {
    screen.Print(svg);
    return ExitCode::kOk;
  }
  const absl::Status written = runtime::WriteFileWhole(command.file, svg);
  if (!written.ok()) return ReportError(written, screen);
  screen.Print(command.file + "\n");
  return ExitCode::kOk;
}

ExitCode Trace(const TraceCommand& command, api::Client& client, const Screen& screen) {
  if (RefuseTerminal(screen)) return ExitCode::kUsage;
  const absl::StatusOr<v1::Job> job = client.GetJob(command.name);
  if (!job.ok()) return ReportError(job.status(), screen);
  if (const std::string why = WhyNot(command.rounds, *job); !why.empty()) {
    screen.Say(why);
    return ExitCode::kNotFound;
  }
  const Span span = SpanOf(command.rounds, job->progress().rounds());
  if (span.last - span.first >= kTraceRoundsMax) {
    screen.Say("--rounds: found " + CountOf(span.last - span.first + 1, "round") +
               ", allowed are at most " + FormatCount(kTraceRoundsMax) + " in a trace");
    return ExitCode::kUsage;
  }
  v1::ListRoundsRequest request;
  request.set_name(job->name());
  request.set_first_round(span.first);
  absl::StatusOr<v1::ListRoundsResponse> rounds =
      client.ListAllRounds(request, span.last - span.first + 1);
  if (!rounds.ok()) return ReportError(rounds.status(), screen);
  return PrintTrace(*job, span, *std::move(rounds), client, screen);
}

}  // namespace tactus::client
