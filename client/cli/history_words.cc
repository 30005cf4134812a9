#include "client/cli/history_words.h"

#include "client/text/flag_checks.h"

namespace tactus::client {

void HistoryWords::Declare(Words& words) {
  DeclareTop(words);
  DeclarePlot(words);
  DeclareTrace(words);
}

void HistoryWords::DeclareTop(Words& words) {
  CLI::App* top = words.app.add_subcommand("top",
                                           "Show nodes, devices and the jobs that are not over, "
                                           "live on a terminal; q or Ctrl-C ends it");
  top->add_flag("--once", top_.once, "Print it once, as where there is no terminal");
  top->callback([this, &words] { words.line.command = top_; });
}

void HistoryWords::DeclarePlot(Words& words) {
  CLI::App* plot = words.app.add_subcommand(
      "plot", "Draw a job's loss, batch sizes and period, with its decisions, as SVG");
  AddJob(plot, &plot_.name);
  plot->add_option("--output", plot_.file, "File to write. Default: standard output");
  plot->add_option("--over", axis_, "Over time or over rounds")
      ->check(CLI::IsMember({"time", "rounds"}))
      ->capture_default_str();
  plot->callback([this, &words] {
    plot_.axis = axis_ == "rounds" ? PlotAxis::kRounds : PlotAxis::kTime;
    words.line.command = plot_;
  });
}

void HistoryWords::DeclareTrace(Words& words) {
  CLI::App* trace = words.app.add_subcommand(
      "trace",
      "Print what every worker did in a job's rounds as a trace, for ui.perfetto.dev or "
      "chrome://tracing");
  AddJob(trace, &trace_.name);
  trace
      ->add_option("--rounds", rounds_,
                   "FIRST:LAST, both included, at most 10,000; either may be left out. Default: "
                   "the last 200")
      ->check(CLI::Validator(CheckRoundRange, "ROUNDS"));
  trace->callback([this, &words] {
    trace_.rounds = ParseRoundRange(rounds_).value_or(RoundRange{});
    words.line.command = trace_;
  });
}

}  // namespace tactus::client
