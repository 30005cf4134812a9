// `tactus explain`.
#include "client/render/error_lines.h"
#include "client/render/story.h"
#include "client/render/tables.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"
#include "policies/axes.h"

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
    verb->add_option("--last", choice_.last, "Only so many decisions, the newest")
        ->check(WholeNumber(1, kDecisionsMax));
    verb->add_option("--axis", axis_, "Only those about this axis")
        ->check(CLI::IsMember(
            std::vector<std::string>(policies::kAxisFields.begin(), policies::kAxisFields.end())));
    verb->add_option("--since", since_,
                     "Only those that were made when the job had trained for so long, such as 10m, "
                     "or later")
        ->check(DurationText());
    AddOutput(verb, &output_, {"table", "json", "yaml"});
  }
  std::string Check() override {
    const bool chosen = !axis_.empty() || !since_.empty() || choice_.last != DecisionChoice{}.last;
    if (devices_ && chosen) return "--value-of-devices tells of no decisions to choose from";
    choice_.since = GivenDuration(since_).value_or(Duration{});
    for (int axis = v1::AXIS_UNSPECIFIED + 1; axis < v1::Axis_ARRAYSIZE; ++axis) {
      if (AxisField(static_cast<v1::Axis>(axis)) == axis_)
        choice_.axis = static_cast<v1::Axis>(axis);
    }
    return "";
  }
  ExitCode Run(const Means& means) override {
    if (devices_) return ValueDevices(means);
    const auto decisions = means.client->ListAllDecisions(name_, kDecisionsMax);
    if (!decisions.ok()) return ReportError(decisions.status(), means.screen);
    if (output_ != "table") {
      means.screen.Print(Render(Chosen(*decisions, choice_), ParseOutputFormat(output_)));
      return ExitCode::kOk;
    }
    const absl::StatusOr<v1::Job> job = means.client->GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), means.screen);
    means.screen.Print(Story(*job, *decisions, means.screen.columns(), choice_));
    return ExitCode::kOk;
  }

 private:
  ExitCode ValueDevices(const Means& means) const {
    const absl::StatusOr<v1::DeviceValues> values = means.client->GetDeviceValues(name_);
    if (!values.ok()) return ReportError(values.status(), means.screen);
    means.screen.Print(
        Render(*values, {ParseOutputFormat(output_), false, means.screen.table_columns()}));
    if (output_ == "table")
      means.screen.Print("\n" + DevicesStory(*values, means.screen.columns()));
    return ExitCode::kOk;
  }

  std::string name_;
  std::string output_ = "table";
  bool devices_ = false;
  DecisionChoice choice_;
  std::string axis_;  // empty: not said; as is the next
  std::string since_;
};

}  // namespace

std::unique_ptr<Verb> MakeExplain() { return std::make_unique<ExplainVerb>(); }

}  // namespace tactus::client
