// `tactus submit`.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "client/render/error_lines.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"
#include "runtime/job_files.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

// Of a file of data that is brought along; larger ones are for the nodes to have.
constexpr std::uintmax_t kDataBytesMax = 64u << 20;

// Whether the file is one that is here and is to be at the coordinator.
bool IsToUpload(const runtime::NamedFile& named) {
  std::error_code failure;
  const bool here = !named.file.starts_with(runtime::kUploaded) &&
                    named.file.find('/') != std::string::npos &&
                    std::filesystem::is_regular_file(named.file, failure);
  if (!here || !named.field.starts_with("data.")) return here;
  const std::uintmax_t bytes = std::filesystem::file_size(named.file, failure);
  return !failure && bytes <= kDataBytesMax;
}

bool HasFilesToUpload(const v1::JobSpec& spec) {
  return std::ranges::any_of(runtime::FilesOf(spec), IsToUpload);
}

// Uploads the files of models and the small ones of data that are found on this machine, and puts
// sha256:HASH in their place. Names of files that are not here stay: the nodes may have them.
absl::Status UploadFiles(api::Client& client, const Screen& screen, v1::JobSpec* spec) {
  for (const auto& [field, file] : runtime::FilesOf(*spec)) {
    if (!IsToUpload({.field = field, .file = file})) continue;
    if (!std::ifstream(file).is_open()) {
      return absl::InvalidArgumentError(field + ": " + Printable(file) + " cannot be read: " +
                                        std::generic_category().message(errno));
    }
    const absl::StatusOr<v1::Blob> blob = client.UploadFile(file);
    if (!blob.ok()) return blob.status();
    const std::string uploaded = std::string(runtime::kUploaded) + blob->sha256();
    screen.Say(Printable(file) + " is at the coordinator as " + uploaded);
    runtime::SetFile(*spec, field, uploaded);
  }
  return absl::OkStatus();
}

// Nodes may have what this machine has not; where none has it the job waits in the queue to fail.
// A pattern of several files is not looked at.
void SayWhatIsNotHere(const v1::JobSpec& spec, const Screen& screen) {
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    std::error_code ignored;
    const bool pattern = file.find_first_of("*?[") != std::string::npos;
    const bool looked_at = !pattern && !file.empty() && !file.starts_with(runtime::kUploaded);
    if (!looked_at || std::filesystem::exists(file, ignored)) continue;
    screen.Say(field + ": " + Printable(file) +
               " is not on this machine; every node that trains the job needs it");
  }
}

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
      if (!valid.ok()) return ReportRefusal(valid, means.screen);
      const absl::Status uploaded =
          UploadFiles(*means.client, means.screen, request.mutable_spec());
      if (!uploaded.ok()) return ReportError(uploaded, means.screen, job_file_);
    }
    const absl::StatusOr<v1::Job> job = means.client->CreateJob(request);
    if (!job.ok()) return ReportRefusal(job.status(), means.screen);
    SayWhatIsNotHere(request.spec(), means.screen);
    return Answer(*job, means);
  }

 private:
  // A job that would be refused brings no files along first.
  static absl::Status Validate(api::Client& client, v1::CreateJobRequest request) {
    request.set_validate_only(true);
    return client.CreateJob(request).status();
  }

  // The job file is to blame for its fields alone.
  ExitCode ReportRefusal(const absl::Status& status, const Screen& screen) const {
    const bool of_fields = !runtime::FieldViolations(status).empty();
    return ReportError(status, screen, of_fields ? job_file_ : "");
  }

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
