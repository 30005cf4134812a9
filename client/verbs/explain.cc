// `tactus explain`.
#include "client/render/error_lines.h"
#include "client/render/story.h"
#include "client/render/tables.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class ExplainVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(
        program, "explain",
        "Tell the story of a job's decisions: what was changed, why, what was expected of it and "
        "what came of it");
    AddJob(verb, &name_);
    verb->add_flag("--value-of-devices", devices_,
                   "Tell instead what each device adds to a job that trains, and what one more "
                   "would");
    AddOutput(verb, &output_, {"table", "json", "yaml"});
  }
  ExitCode Run(const Means& means) override {
    if (devices_) return ValueDevices(means);
    const auto decisions = means.client->ListAllDecisions(name_, kDecisionsMax);
    if (!decisions.ok()) return ReportError(decisions.status(), means.screen);
    if (output_ != "table") {
      means.screen.Print(Render(*decisions, ParseOutputFormat(output_)));
      return ExitCode::kOk;
    }
    const absl::StatusOr<v1::Job> job = means.client->GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), means.screen);
    means.screen.Print(Story(*job, *decisions, means.screen.columns()));
    return ExitCode::kOk;
  }

 private:
  ExitCode ValueDevices(const Means& means) const {
    const absl::StatusOr<v1::DeviceValues> values = means.client->GetDeviceValues(name_);
    if (!values.ok()) return ReportError(values.status(), means.screen);
    means.screen.Print(Render(*values, ParseOutputFormat(output_)));
    if (output_ == "table")
      means.screen.Print("\n" + DevicesStory(*values, means.screen.columns()));
    return ExitCode::kOk;
  }

  std::string name_;
  std::string output_ = "table";
  bool devices_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeExplain() { return std::make_unique<ExplainVerb>(); }

}  // namespace tactus::client
