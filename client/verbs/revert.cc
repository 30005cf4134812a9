// `tactus revert`.
#include "client/render/error_lines.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/verb.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class RevertVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "revert",
                             "Take a decision back: what it changed goes back to what it was, and "
                             "stays there until update --unfreeze sets it free");
    AddJob(verb, &name_);
    verb->add_option("decision", decision_,
                     "The decision as explain and get decisions name it: 12-batch")
        ->required();
    verb->add_flag("--dry-run", dry_run_, "Only have it checked by the coordinator");
  }
  ExitCode Run(const Means& means) override {
    v1::RevertDecisionRequest request;
    request.set_name(name_ + "/decisions/" + decision_);
    request.set_validate_only(dry_run_);
    const auto reverted = means.client->RevertDecision(std::move(request));
    if (!reverted.ok()) return ReportError(reverted.status(), means.screen);
    const v1::Decision& decision = reverted->decision();
    const std::string job = Printable(ShortName(reverted->job().name()));
    const std::string axis = AxisName(decision.axis());
    if (dry_run_) {
      means.screen.Say("job " + job + ": the " + axis + " would go back to " +
                       Printable(decision.from()) + " and stay there; nothing was changed");
      return ExitCode::kOk;
    }
    means.screen.Say("job " + job + ": the " + axis + " goes back to " +
                     Printable(decision.from()) + " and stays there");
    means.screen.Say("tactus update " + job + " --unfreeze " + AxisField(decision.axis()) +
                     " sets it free");
    return ExitCode::kOk;
  }

 private:
  std::string name_;
  std::string decision_;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeRevert() { return std::make_unique<RevertVerb>(); }

}  // namespace tactus::client
