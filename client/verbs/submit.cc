// `tactus submit`.
#include "client/render/error_lines.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/submission.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class SubmitVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "submit",
                "Submit a job; files of a model that are here are uploaded, and small data");
    AddJobFile(verb, &job_file_);
    verb->add_flag("--dry-run", dry_run_, "Only have it checked by the coordinator");
    verb->add_flag("--follow", follow_, "Show its progress until it ends; Ctrl-C detaches");
    AddRepeated(verb, "--label", &label_texts_, "Add a label: --label team=vision");
    verb->add_option("--from", from_,
                     "Begin from this job: with the weights of its result where it succeeded, else "
                     "from its last checkpoint");
    AddPriority(verb, &priority_);
    AddOutput(verb, &output_, {"name", "json", "yaml", "table"});
    AddOverrides(verb, &set_);
  }
  std::string Check() override {
    const std::string problem = ReadOverrides(set_, &overrides_);
    return problem.empty() ? ReadLabels(label_texts_, &labels_) : problem;
  }
  ExitCode Run(const Means& means) override {
    v1::CreateJobRequest request;
    if (!MakeRequest(means.screen, &request)) return ExitCode::kUsage;
    if (!dry_run_ && HasFilesToUpload(request.spec())) {
      const absl::Status valid = Validate(*means.client, request);
      if (!valid.ok()) return ReportRefusal(valid, job_file_, means.screen);
      const absl::Status uploaded =
          Uploads(*means.client, means.screen).Upload(request.mutable_spec());
      if (!uploaded.ok()) return ReportError(uploaded, means.screen, job_file_);
    }
    const absl::StatusOr<v1::Job> job = means.client->CreateJob(request);
    if (!job.ok()) return ReportRefusal(job.status(), job_file_, means.screen);
    SayWhatIsNotHere(request.spec(), means.screen);
    return Answer(*job, means);
  }

 private:
  // The file and what the command line adds to it. False: what is wrong was said.
  bool MakeRequest(const Screen& screen, v1::CreateJobRequest* request) const {
    const JobFile file = ReadJobFile(job_file_, overrides_);
    for (const std::string& error : file.errors) screen.Say(job_file_ + ": " + error);
    if (!file.errors.empty()) return false;
    *request->mutable_spec() = file.spec;
    if (const auto priority = ParsePriority(priority_)) {
      request->mutable_spec()->set_priority(*priority);
    }
    request->mutable_labels()->insert(labels_.begin(), labels_.end());
    request->set_validate_only(dry_run_);
    request->set_from(from_);
    return true;
  }

  ExitCode Answer(const v1::Job& job, const Means& means) const {
    const OutputFormat format = ParseOutputFormat(output_);
    const Screen& screen = means.screen;
    if (dry_run_) screen.Say(job_file_ + ": valid; nothing was submitted");
    const bool follow = follow_ && !dry_run_;
    if (follow && format == OutputFormat::kName) {
      screen.Say("job " + Printable(ShortName(job.name())) + " submitted");
    } else if (!follow && !(dry_run_ && format == OutputFormat::kName)) {
      screen.Print(Render(job, {format, screen.has_colour()}));
    }
    if (!follow) return ExitCode::kOk;
    return FollowToEnd({.name = job.name(), .json = format == OutputFormat::kJson}, *means.client,
                       screen);
  }

  std::string job_file_;
  std::vector<std::string> set_;
  std::vector<Override> overrides_;  // of set_
  std::vector<std::string> label_texts_;
  std::map<std::string, std::string> labels_;  // of label_texts_
  std::string from_;
  std::string priority_;
  bool dry_run_ = false;
  bool follow_ = false;
  std::string output_ = "name";
};

}  // namespace

std::unique_ptr<Verb> MakeSubmit() { return std::make_unique<SubmitVerb>(); }

}  // namespace tactus::client
