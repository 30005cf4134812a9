// `tactus admin integrity-check`.
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class IntegrityCheckVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(AdminGroup(program), "integrity-check",
                "Look through database and blobs; ends with 1 when something is wrong");
    AddOutput(verb, &output_, {"table", "json"});
  }
  ExitCode Run(const Means& means) override {
    const absl::StatusOr<v1::CheckIntegrityResponse> found = means.client->CheckIntegrity();
    if (!found.ok()) return ReportError(found.status(), means.screen);
    const bool sound = found->problems().empty();
    if (output_ == "json") {
      means.screen.Print(JsonLine(*found) + "\n");
    } else if (sound) {
      means.screen.Print(CountOf(found->jobs(), "job") + " and " + CountOf(found->blobs(), "blob") +
                         " are sound\n");
    } else {
      for (const std::string& problem : found->problems()) {
        means.screen.Print(Printable(problem) + "\n");
      }
    }
    return sound ? ExitCode::kOk : ExitCode::kGeneric;
  }

 private:
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeIntegrityCheck() { return std::make_unique<IntegrityCheckVerb>(); }

}  // namespace tactus::client
