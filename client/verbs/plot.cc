// `tactus plot`.
#include <sys/stat.h>

#include <cerrno>

#include "client/observe/job_plot.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

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
  request.set_page_size(kRoundsOfAPage);
  do {
    const absl::StatusOr<v1::ListRoundsResponse> page = client.ListRounds(request);
    if (!page.ok()) return page.status();
    for (const v1::Round& round : page->rounds()) plot.Add(round);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

class PlotVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "plot",
                "Draw a job's loss, on training and validation samples, batch sizes and period, "
                "with its decisions, as SVG");
    AddJob(verb, &name_);
    verb->add_option("--output", file_, "File to write. Default: standard output");
    verb->add_option("--over", axis_, "Over time or over rounds")
        ->check(CLI::IsMember({"time", "rounds"}))
        ->capture_default_str();
  }
  ExitCode Run(const Means& means) override {
    api::Client& client = *means.client;
    const Screen& screen = means.screen;
    if (file_.empty() && RefuseTerminal(screen)) return ExitCode::kUsage;
    const absl::StatusOr<v1::Job> job = client.GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), screen);
    const std::string name = ShortName(job->name());
    // Before the rounds: of what is decided meanwhile the rounds may not be there.
    const auto decisions = client.ListAllDecisions(job->name(), kDecisionsMax);
    if (!decisions.ok()) return ReportError(decisions.status(), screen);
    const auto validations = client.ListValidations(job->name());
    if (!validations.ok()) return ReportError(validations.status(), screen);
    JobPlot plot(axis_ == "rounds" ? PlotAxis::kRounds : PlotAxis::kTime, *decisions, *validations);
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
    if (file_.empty()) {
      screen.Print(drawing.svg);
      return ExitCode::kOk;
    }
    const absl::Status written = OfLocalFile(WriteOutput(file_, drawing.svg));
    if (!written.ok()) return ReportError(written, screen);
    screen.Print(file_ + "\n");
    return ExitCode::kOk;
  }

 private:
  std::string name_;
  std::string file_;  // empty: standard output
  std::string axis_ = "time";
};

}  // namespace

std::unique_ptr<Verb> MakePlot() { return std::make_unique<PlotVerb>(); }

}  // namespace tactus::client
