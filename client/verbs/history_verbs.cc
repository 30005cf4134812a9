// `tactus trace` and `tactus plot`: what a job's history looks like.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "client/observe/job_plot.h"
#include "client/observe/job_trace.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/verbs.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr std::size_t kDecisionsMax = 100'000;
constexpr int kPageRounds = 1000;
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

std::string Subject(const v1::Job& job) { return "job " + Printable(ShortName(job.name())); }

// What cannot be shown; empty: it can.
std::string WhyNot(const RoundRange& range, const v1::Job& job) {
  const std::string subject = Subject(job);
  const std::uint64_t applied = job.progress().rounds();
  if (applied == 0) return subject + " has applied no round yet";
  if (range.first && *range.first >= applied) {
    return subject + ": found round " + std::to_string(*range.first) + ", its last one is " +
           std::to_string(applied - 1);
  }
  return "";
}

ExitCode PrintTrace(const v1::Job& job, const v1::ListRoundsResponse& rounds, api::Client& client,
                    const Screen& screen) {
  const auto decisions = client.ListAllDecisions(job.name(), kDecisionsMax);
  if (!decisions.ok()) return ReportError(decisions.status(), screen);
  const JobTrace trace = TraceJob(job, rounds, *decisions);
  screen.Print(trace.text);
  screen.Say(trace.remarks);
  return ExitCode::kOk;
}

// What of `asked` is not in `found`; empty: nothing. Where no end was asked for, the last round on
// record is it: rounds are recorded a little after a job's progress counts them.
std::string WhatIsMissing(Span asked, bool to_the_last, const v1::ListRoundsResponse& found) {
  if (found.rounds().empty()) return Words(asked) + " are not on record";
  Span shown;
  shown.first = found.rounds().begin()->round();
  shown.last = found.rounds().rbegin()->round();
  if (to_the_last) asked.last = shown.last;
  if (shown.first == asked.first && shown.last == asked.last) return "";
  return Words(shown) + " of " + Words(asked) + " are on record";
}

// The rounds of the span, page by page, so that a range of too much is found before it is all
// there. InvalidArgument says which range would fit.
absl::StatusOr<v1::ListRoundsResponse> FetchRounds(const v1::Job& job, const Span& span,
                                                   api::Client& client) {
  v1::ListRoundsRequest request;
  request.set_name(job.name());
  request.set_first_round(span.first);
  request.set_page_size(kPageRounds);
  v1::ListRoundsResponse all;
  std::uint64_t workers = 0;
  do {
    absl::StatusOr<v1::ListRoundsResponse> page = client.ListRounds(request);
    if (!page.ok()) return page.status();
    for (v1::Round& round : *page->mutable_rounds()) {
      if (round.round() > span.last) break;
      workers += static_cast<std::uint64_t>(round.worker_compute_seconds_size());
      if (workers > kTraceWorkerRoundsMax) {
        return absl::InvalidArgumentError(
            "--rounds: " + Words(span) + " are too many of so many workers, allowed are at most " +
            FormatCount(kTraceWorkerRoundsMax) + " rounds times workers; " +
            std::to_string(span.first) + ":" +
            std::to_string(std::max(span.first, round.round() - 1)) + " fits");
      }
      *all.add_rounds() = std::move(round);
    }
    all.mutable_groups()->Swap(page->mutable_groups());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() &&
           (all.rounds().empty() || all.rounds().rbegin()->round() < span.last));
  return all;
}

// What is drawn is for programs to show.
bool RefuseTerminal(const Screen& screen) {
  if (!screen.is_for_a_person()) return false;
  screen.Say("standard output is a terminal; allowed is a file: ... > FILE");
  return true;
}

// As a shell's > would have made it, but whole: readable for whom the user's umask allows.
absl::Status WriteOutput(const std::string& path, const std::string& text) {
  if (absl::Status status = runtime::WriteFileWhole(path, text); !status.ok()) return status;
  const mode_t mask = umask(0);
  umask(mask);
  return chmod(path.c_str(), 0666 & ~mask) == 0
             ? absl::OkStatus()
             : runtime::FileError(errno, path, "cannot be made readable");
}

// Page by page: a long job's rounds together need not fit into memory.
absl::Status AddRounds(const std::string& name, api::Client& client, JobPlot& plot) {
  v1::ListRoundsRequest request;
  request.set_name(name);
  request.set_page_size(kPageRounds);
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
  // Before the rounds: of what is decided meanwhile the rounds may not be there.
  const auto decisions = client.ListAllDecisions(job->name(), kDecisionsMax);
  if (!decisions.ok()) return ReportError(decisions.status(), screen);
  JobPlot plot(command.axis, *decisions);
  if (absl::Status status = AddRounds(job->name(), client, plot); !status.ok()) {
    return ReportError(status, screen);
  }
  if (plot.rounds() == 0) {
    screen.Say("job " + Printable(name) + " has no round on record yet");
    return ExitCode::kNotFound;
  }
  const Drawing drawing = DrawSvg(plot.Finish(name));
  if (drawing.marks_without_text > 0) {
    screen.Say(CountOf(drawing.marks_without_text, "decision") +
               " without text: too close to others; tactus explain " + Printable(name) +
               " tells all");
  }
  if (command.file.empty()) {
    screen.Print(drawing.svg);
    return ExitCode::kOk;
  }
  const absl::Status written = WriteOutput(command.file, drawing.svg);
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
  const absl::StatusOr<v1::ListRoundsResponse> rounds = FetchRounds(*job, span, client);
  if (!rounds.ok()) return ReportError(rounds.status(), screen);
  if (const std::string missing = WhatIsMissing(span, !command.rounds.last, *rounds);
      !missing.empty()) {
    screen.Say(Subject(*job) + ": " + missing);
  }
  if (rounds->rounds().empty()) return ExitCode::kNotFound;
  return PrintTrace(*job, *rounds, client, screen);
}

}  // namespace tactus::client
