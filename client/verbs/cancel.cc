// `tactus cancel`.
#include <google/protobuf/util/time_util.h>

#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "client/verbs/answers.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class CancelVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "cancel",
                             "End a job at the next round's edge, with the result it has by then");
    AddJob(verb, &name_);
    verb->add_flag("--discard", discard_, "At once and without a result");
    verb->add_option("--grace", grace_,
                     "How long its workers may take before they are killed. Default: 5m, with "
                     "--discard 30s")
        ->check(DurationText());
  }
  ExitCode Run(const Means& means) override {
    v1::CancelJobRequest request;
    request.set_name(name_);
    request.set_discard(discard_);
    if (const auto grace = GivenDuration(grace_)) {
      *request.mutable_grace() =
          google::protobuf::util::TimeUtil::NanosecondsToDuration(grace->count());
    }
    const absl::StatusOr<v1::Job> job = means.client->CancelJob(request);
    const bool late = job.ok() && (job->state() == v1::JOB_STATE_SUCCEEDED ||
                                   job->state() == v1::JOB_STATE_FAILED);
    if (!late) return SayState(job, means.screen);
    means.screen.Say("job " + Printable(ShortName(job->name())) + " was not cancelled: it has " +
                     StateName(job->state()) + " already");
    return ExitCode::kConflict;
  }

 private:
  std::string name_;
  bool discard_ = false;
  std::string grace_;
};

}  // namespace

std::unique_ptr<Verb> MakeCancel() { return std::make_unique<CancelVerb>(); }

}  // namespace tactus::client
