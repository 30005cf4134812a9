// `tactus describe`.
#include "client/render/describe.h"

#include "client/render/error_lines.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class DescribeVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App& verb = *AddGroup(program, "describe", "Say all that is known of a job or a node");
    AddJob(AddVerb(verb, "job", "A job, with its plan and its job file"), &name_);
    AddNode(AddVerb(verb, "node", "A node, with its devices", [this] { node_ = true; }), &name_);
  }
  ExitCode Run(const Means& means) override {
    return node_ ? Show(means.client->GetNode(name_), means.screen)
                 : Show(means.client->GetJob(name_), means.screen);
  }

 private:
  template <typename Resource>
  static ExitCode Show(const absl::StatusOr<Resource>& found, const Screen& screen) {
    if (!found.ok()) return ReportError(found.status(), screen);
    screen.Print(Describe(*found, screen.has_colour()));
    return ExitCode::kOk;
  }

  bool node_ = false;  // not a job
  std::string name_;
};

}  // namespace

std::unique_ptr<Verb> MakeDescribe() { return std::make_unique<DescribeVerb>(); }

}  // namespace tactus::client
