// `tactus sweep`.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <utility>

#include "client/api/request_id.h"
#include "client/render/error_lines.h"
#include "client/render/sweep_table.h"
#include "client/text/text.h"
#include "client/verbs/submission.h"
#include "client/verbs/sweep_grid.h"
#include "client/verbs/words.h"
#include "client/yaml/job_file.h"
#include "coordinator/job/arrays.h"
#include "coordinator/spec/shape_of_job.h"

namespace tactus::client {
namespace {

// How many characters of a request id tell a sweep's name from those of others.
constexpr std::size_t kNameDigits = 6;

constexpr std::size_t kNameMax = 48;

// So that it can be a label's value, and the beginning of a request's id.
bool IsSweepName(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto allowed = [&](unsigned char c) { return plain(c) || c == '-'; };
  return !text.empty() && text.size() <= kNameMax && std::ranges::all_of(text, allowed) &&
         plain(text.front()) && plain(text.back());
}

class SweepVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "sweep",
                             "Submit a job for each combination of values of some of its fields");
    AddJobFile(verb, &job_file_);
    AddRepeated(verb, "--over", &over_texts_,
                "A field and its values: --over learning_rate=0.01,0.03; the path may be left out "
                "where only one field of the file has that name. Again: every combination")
        ->required();
    verb->add_option("--name", name_,
                     "Of the sweep. Default: the job's, with some letters. A sweep that is "
                     "submitted again under its name submits what is missing");
    CLI::Option* const apart =
        verb->add_flag("--apart", apart_,
                       "Each trains in a process of its own. Else those that find no device free "
                       "share one with others of the sweep, in one process, where they can "
                       "(workers: {max: 1}, bytes-lm or cifar-cnn)");
    verb->add_flag("--together", together_, "The same, and says why not where they cannot")
        ->excludes(apart);
    verb->add_flag("--dry-run", dry_run_, "Only have all of them checked by the coordinator");
    AddRepeated(verb, "--label", &label_texts_, "Add a label to all: --label team=vision");
    AddPriority(verb, &priority_);
    AddOutput(verb, &output_, {"table", "name", "json", "yaml"});
    AddOverrides(verb, &set_);
  }
  std::string Check() override {
    for (const std::string& text : over_texts_) {
      const std::string problem = ParseSwept(text, &fields_.emplace_back());
      if (!problem.empty()) return problem;
    }
    if (!name_.empty() && !IsSweepName(name_)) {
      return "--name: found \"" + Printable(name_) + "\", allowed are 1 to " +
             std::to_string(kNameMax) +
             " letters, digits and \"-\", with a letter or digit at both ends";
    }
    const std::string problem = ReadOverrides(set_, &overrides_);
    return problem.empty() ? ReadLabels(label_texts_, &labels_) : problem;
  }
  // All are checked before the first is submitted, so that a value that is out of its range leaves
  // no half of a sweep behind.
  ExitCode Run(const Means& means) override {
    std::vector<v1::CreateJobRequest> requests;
    if (!MakeRequests(means.screen, &requests)) return ExitCode::kUsage;
    for (const v1::CreateJobRequest& request : requests) {
      const absl::Status valid = Validate(*means.client, request);
      if (!valid.ok()) return ReportRefusal(valid, job_file_, means.screen);
    }
    if (dry_run_) {
      means.screen.Say(job_file_ + ": " + CountOf(requests.size(), "job") +
                       ", all valid; nothing was submitted");
      SayHowTheyTrain(requests, means.screen);
      return ExitCode::kOk;
    }
    return Submit(std::move(requests), means);
  }

 private:
  // False: what is wrong was said.
  bool MakeRequests(const Screen& screen, std::vector<v1::CreateJobRequest>* requests) {
    const JobText text = ReadJobText(job_file_);
    if (!text.error.empty()) screen.Say(job_file_ + ": " + text.error);
    if (!text.error.empty()) return false;
    const JobFile plain = Parse(text, {}, screen);
    if (!plain.errors.empty()) return false;
    for (SweptField& field : fields_) {
      const std::string problem = FindField(plain.spec, &field);
      if (!problem.empty()) screen.Say(problem);
      if (!problem.empty()) return false;
    }
    std::size_t count = 1;
    for (const SweptField& field : fields_)
      count *= std::min(field.values.size(), kSweepJobsMax + 1);
    if (count > kSweepJobsMax) {
      screen.Say("--over: found " + CountOf(count, "combination") + ", allowed are " +
                 std::to_string(kSweepJobsMax));
      return false;
    }
    if (name_.empty()) {
      name_ = plain.spec.name().substr(0, kNameMax - kNameDigits - 1) + "-" +
              api::NewRequestId().substr(0, kNameDigits);
    }
    for (const std::vector<Override>& point : Grid(fields_)) {
      const JobFile file = Parse(text, point, screen);
      if (!file.errors.empty()) return false;
      requests->push_back(MakeRequest(file.spec, point, requests->size()));
    }
    return true;
  }

  JobFile Parse(const JobText& text, const std::vector<Override>& point,
                const Screen& screen) const {
    std::vector<Override> overrides = overrides_;
    overrides.insert(overrides.end(), point.begin(), point.end());
    JobFile file = ParseJobFile(text.text, overrides, text.folder);
    for (const std::string& error : file.errors) screen.Say(job_file_ + ": " + error);
    return file;
  }

  // Where it lies in the sweep names the call: the same one again makes no second job.
  v1::CreateJobRequest MakeRequest(const v1::JobSpec& spec, const std::vector<Override>& point,
                                   std::size_t at) const {
    v1::CreateJobRequest request;
    *request.mutable_spec() = spec;
    if (const auto priority = ParsePriority(priority_)) {
      request.mutable_spec()->set_priority(*priority);
    }
    auto& labels = *request.mutable_labels();
    labels.insert(labels_.begin(), labels_.end());
    labels[kSweepLabel] = name_;
    // Of a label that the user gives, other jobs may be too.
    if (!apart_ && (together_ || spec::WhyByItself(spec::Resolve(spec)).empty())) {
      labels.try_emplace(job::kArrayLabel, name_);
    }
    for (const Override& value : point) labels[kSweptPrefix + value.path] = LabelOf(value.value);
    request.set_request_id(name_ + "-" + std::to_string(at));
    return request;
  }

  ExitCode Submit(std::vector<v1::CreateJobRequest> requests, const Means& means) const {
    Uploads uploads(*means.client, means.screen);
    v1::ListJobsResponse made;
    for (v1::CreateJobRequest& request : requests) {
      const absl::Status uploaded = uploads.Upload(request.mutable_spec());
      const absl::StatusOr<v1::Job> job =
          uploaded.ok() ? means.client->CreateJob(request) : absl::StatusOr<v1::Job>(uploaded);
      if (!job.ok()) {
        SayWhatIsMissing(made.jobs_size(), requests.size(), means.screen);
        return ReportRefusal(job.status(), job_file_, means.screen);
      }
      *made.add_jobs() = *job;
    }
    SayWhatIsNotHere(requests.front().spec(), means.screen);
    means.screen.Print(RenderSweep(made, {ParseOutputFormat(output_), means.screen.has_colour(),
                                          means.screen.table_columns()}));
    means.screen.Say("sweep " + Printable(name_) +
                     " submitted: " + CountOf(requests.size(), "job") + "; tactus get sweep " +
                     Printable(name_) + " shows how they do");
    SayHowTheyTrain(requests, means.screen);
    return ExitCode::kOk;
  }

  // By the first that cannot share a process: most often none can, for the same reason.
  void SayHowTheyTrain(const std::vector<v1::CreateJobRequest>& requests,
                       const Screen& screen) const {
    if (apart_ || requests.size() < 2) return;
    for (const v1::CreateJobRequest& request : requests) {
      const std::string reason = spec::WhyByItself(spec::Resolve(request.spec()));
      if (reason.empty()) continue;
      if (together_) screen.Say("each trains in a process of its own: " + Printable(reason));
      return;
    }
    screen.Say(
        "those that find no device free share one with others of the sweep, in one process; "
        "--apart keeps them apart");
  }

  void SayWhatIsMissing(int made, std::size_t all, const Screen& screen) const {
    if (made == 0) return;
    screen.Say("sweep " + Printable(name_) + ": " + std::to_string(made) + " of " +
               CountOf(all, "job") + " submitted; the same command with --name " +
               Printable(name_) + " submits the others");
  }

  std::string job_file_;
  std::vector<std::string> over_texts_;
  std::vector<SweptField> fields_;  // of over_texts_
  std::vector<std::string> set_;
  std::vector<Override> overrides_;  // of set_
  std::vector<std::string> label_texts_;
  std::map<std::string, std::string> labels_;  // of label_texts_
  std::string name_;
  std::string priority_;
  bool apart_ = false;
  bool together_ = false;
  bool dry_run_ = false;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeSweep() { return std::make_unique<SweepVerb>(); }

}  // namespace tactus::client
