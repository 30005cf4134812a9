// `tactus download`.
#include "client/local/download.h"

#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class DownloadVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "download",
                "Fetch the files of a job's result and its snapshots, and where they come from");
    AddJob(verb, &name_);
    verb->add_option("--to", folder_, "Folder to write to. Default: one with the job's name");
  }
  ExitCode Run(const Means& means) override {
    const absl::StatusOr<v1::Job> job = means.client->GetJob(name_);
    if (!job.ok()) return ReportError(job.status(), means.screen);
    const std::string folder = folder_.empty() ? ShortName(job->name()) : folder_;
    const auto paths = DownloadResult(*means.client, *job, folder);
    if (!paths.ok()) return ReportError(paths.status(), means.screen);
    for (const std::string& path : *paths) means.screen.Print(path + "\n");
    // Of a job that is not over there are files, and no record yet.
    if (!IsOver(job->state())) return ExitCode::kOk;
    const auto record = DownloadProvenance(*means.client, job->name(), folder);
    if (!record.ok()) return ReportError(record.status(), means.screen);
    for (const std::string& path : *record) means.screen.Print(path + "\n");
    return ExitCode::kOk;
  }

 private:
  std::string name_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<Verb> MakeDownload() { return std::make_unique<DownloadVerb>(); }

}  // namespace tactus::client
