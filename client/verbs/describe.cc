// `tactus describe`.
#include "client/render/describe.h"

#include "client/render/error_lines.h"
#include "client/render/tables.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class DescribeVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App& verb = *AddGroup(program, "describe", "Say all that is known of a job or a node");
    CLI::App* const job = AddVerb(verb, "job", "A job, with its plan and its job file");
    AddJob(job, &name_);
    job->add_flag("--deadlines", deadlines_, "Only how long it waits for what, and why so long");
    AddOutput(job, &output_, {"table", "json", "yaml"});
    CLI::App* const node =
        AddVerb(verb, "node", "A node, with its devices", [this] { node_ = true; });
    AddNode(node, &name_);
    AddOutput(node, &output_, {"table", "json", "yaml"});
  }
  ExitCode Run(const Means& means) override {
    const OutputFormat format = ParseOutputFormat(output_);
    const auto all = [&](const auto& found) {
      return format == OutputFormat::kTable ? Describe(found, means.screen.has_colour())
                                            : Render(found, format);
    };
    if (node_) return Show(means.client->GetNode(name_), all, means.screen);
    const absl::StatusOr<v1::Job> job = means.client->GetJob(name_);
    const auto deadlines = [&](const v1::Job& found) {
      if (format == OutputFormat::kTable) return DescribeDeadlines(found);
      v1::Job shown;
      shown.set_name(found.name());
      *shown.mutable_deadlines() = found.deadlines();
      return Render(shown, format);
    };
    return deadlines_ ? Show(job, deadlines, means.screen) : Show(job, all, means.screen);
  }

 private:
  static ExitCode Show(const auto& found, const auto& describe, const Screen& screen) {
    if (!found.ok()) return ReportError(found.status(), screen);
    screen.Print(describe(*found));
    return ExitCode::kOk;
  }

  bool node_ = false;  // not a job
  bool deadlines_ = false;
  std::string name_;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeDescribe() { return std::make_unique<DescribeVerb>(); }

}  // namespace tactus::client
