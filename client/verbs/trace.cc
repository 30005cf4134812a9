// `tactus trace`.
#include <algorithm>
#include <cstdint>

#include "client/observe/job_trace.h"
#include "client/render/error_lines.h"
#include "client/text/flag_checks.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kRoundsShown = 200;  // where no range is given

// The first and the last round that are asked for, of a job that applied `applied` >= 1.
struct RoundSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

RoundSpan SpanOf(const RoundRange& range, std::uint64_t applied) {
  const std::uint64_t last = std::min(range.last.value_or(applied - 1), applied - 1);
  const std::uint64_t shown = std::min(last, kRoundsShown - 1);
  return {.first = range.first.value_or(range.last ? 0 : last - shown), .last = last};
}

std::string WordsOf(const RoundSpan& span) {
  return "rounds " + std::to_string(span.first) + " to " + std::to_string(span.last);
}

std::string SubjectOf(const v1::Job& job) { return "job " + Printable(ShortName(job.name())); }

// What cannot be shown; empty: it can.
std::string WhyNot(const RoundRange& range, const v1::Job& job) {
  const std::string subject = SubjectOf(job);
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
std::string WhatIsMissing(RoundSpan asked, bool to_the_last, const v1::ListRoundsResponse& found) {
  if (found.rounds().empty()) return WordsOf(asked) + " are not on record";
  RoundSpan shown;
  shown.first = found.rounds().begin()->round();
  shown.last = found.rounds().rbegin()->round();
  if (to_the_last) asked.last = shown.last;
  if (shown.first == asked.first && shown.last == asked.last) return "";
  return WordsOf(shown) + " of " + WordsOf(asked) + " are on record";
}

// The rounds of the span, page by page, so that a range of too much is found before it is all
// there. InvalidArgument says which range would fit.
absl::StatusOr<v1::ListRoundsResponse> FetchRounds(const v1::Job& job, const RoundSpan& span,
                                                   api::Client& client) {
  v1::ListRoundsRequest request;
  request.set_name(job.name());
  request.set_first_round(span.first);
  request.set_page_size(kRoundsOfAPage);
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
            "--rounds: " + WordsOf(span) +
            " are too many of so many workers, allowed are at most " +
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

class TraceVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "trace",
                "Print what every worker did in a job's rounds as a trace, for ui.perfetto.dev or "
                "chrome://tracing");
    AddJob(verb, &name_);
    verb->add_option("--rounds", rounds_,
                     "FIRST:LAST, both included, at most 10,000; either may be left out. Default: "
                     "the last 200")
        ->check(CLI::Validator(CheckRoundRange, "ROUNDS"));
  }
  ExitCode Run(const Means& means) override {
    api::Client& client = *means.client;
    const Screen& screen = means.screen;
    const RoundRange range = ParseRoundRange(rounds_).value_or(RoundRange{});
    if (RefuseTerminal(screen)) return ExitCode::kUsage;
    const absl::StatusOr<v1::Job> job = client.GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), screen);
    if (const std::string why = WhyNot(range, *job); !why.empty()) {
      screen.Say(why);
      return ExitCode::kNotFound;
    }
    const RoundSpan span = SpanOf(range, job->progress().rounds());
    if (span.last - span.first >= kTraceRoundsMax) {
      screen.Say("--rounds: found " + CountOf(span.last - span.first + 1, "round") +
                 ", allowed are at most " + FormatCount(kTraceRoundsMax) + " in a trace");
      return ExitCode::kUsage;
    }
    const absl::StatusOr<v1::ListRoundsResponse> rounds = FetchRounds(*job, span, client);
    if (!rounds.ok()) return ReportError(rounds.status(), screen);
    if (const std::string missing = WhatIsMissing(span, !range.last, *rounds); !missing.empty()) {
      screen.Say(SubjectOf(*job) + ": " + missing);
    }
    if (rounds->rounds().empty()) return ExitCode::kNotFound;
    return PrintTrace(*job, *rounds, client, screen);
  }

 private:
  std::string name_;
  std::string rounds_;  // empty: the last ones
};

}  // namespace

std::unique_ptr<Verb> MakeTrace() { return std::make_unique<TraceVerb>(); }

}  // namespace tactus::client
