// `tactus submit`.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "client/render/error_lines.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

absl::Status Upload(const std::string& field, api::Client& client, const Screen& screen,
                    std::string* path) {
  std::error_code ignored;
  const bool here = !path->starts_with(kBlobPrefix) && path->find('/') != std::string::npos &&
                    std::filesystem::is_regular_file(*path, ignored);
  if (!here) return absl::OkStatus();
  if (!std::ifstream(*path).is_open()) {
    return absl::InvalidArgumentError(field + ": " + Printable(*path) +
                                      " cannot be read: " + std::generic_category().message(errno));
  }
  const absl::StatusOr<v1::Blob> blob = client.UploadFile(*path);
  if (!blob.ok()) return blob.status();
  screen.Say(Printable(*path) + " is at the coordinator as " + kBlobPrefix + blob->sha256());
  *path = kBlobPrefix + blob->sha256();
  return absl::OkStatus();
}

// Uploads the files that model.torchscript and model.loss name, where they are found on this
// machine, and puts sha256:HASH in their place. Names of files that are not here stay: the nodes
// may have them.
absl::Status UploadModels(api::Client& client, const Screen& screen, v1::JobSpec* spec) {
  if (!spec->has_model()) return absl::OkStatus();
  v1::Model* model = spec->mutable_model();
  if (model->has_torchscript()) {
    const absl::Status status =
        Upload("model.torchscript", client, screen, model->mutable_torchscript());
    if (!status.ok()) return status;
  }
  if (model->loss().empty()) return absl::OkStatus();
  return Upload("model.loss", client, screen, model->mutable_loss());
}

// Nodes may have what this machine has not; where none has it the job waits in the queue to fail.
// A pattern of several files is not looked at.
void SayWhatIsNotHere(const v1::Data& data, const Screen& screen) {
  const auto look = [&screen](const std::string& field, const std::string& path) {
    std::error_code ignored;
    const bool pattern = path.find_first_of("*?[") != std::string::npos;
    if (path.empty() || pattern || std::filesystem::exists(path, ignored)) return;
    screen.Say(field + ": " + Printable(path) +
               " is not on this machine; every node that trains the job needs it");
  };
  look("data.text", data.text());
  look("data.cifar", data.cifar());
  look("data.idx.inputs", data.idx().inputs());
  look("data.idx.targets", data.idx().targets());
  look("data.numpy.inputs", data.numpy().inputs());
  look("data.numpy.targets", data.numpy().targets());
}

class SubmitVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "submit", "Submit a job; a model or loss that is a file here is uploaded");
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
    if (!dry_run_) {
      const absl::Status uploaded =
          UploadModels(*means.client, means.screen, request.mutable_spec());
      if (!uploaded.ok()) return ReportError(uploaded, means.screen, job_file_);
    }
    const absl::StatusOr<v1::Job> job = means.client->CreateJob(request);
    if (!job.ok()) return ReportRefusal(job.status(), means.screen);
    SayWhatIsNotHere(request.spec().data(), means.screen);
    return Answer(*job, means);
  }

 private:
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
