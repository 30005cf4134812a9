// `tactus config`.
#include "client/render/error_lines.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class ConfigVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App& verb =
        *AddGroup(program, "config", "Show or change what tactus remembers for all commands");
    AddOutput(AddVerb(verb, "show", "The settings in force and where each came from",
                      [this] { action_ = Action::kShow; }),
              &output_, {"table", "json", "yaml"});
    AddOutput(AddVerb(verb, "get-contexts", "The coordinators that the configuration file names",
                      [this] { action_ = Action::kGetContexts; }),
              &output_, {"table", "name"});
    AddVerb(verb, "use-context", "Use this coordinator from now on",
            [this] { action_ = Action::kUseContext; })
        ->add_option("context", context_, "Its name in the configuration file")
        ->required();
  }
  // A file whose context is gone can be mended with use-context.
  Need need() const override {
    return action_ == Action::kUseContext ? Need::kNothing : Need::kSettings;
  }
  ExitCode Run(const Means& means) override {
    if (action_ == Action::kUseContext) return Use(means);
    const OutputFormat format = ParseOutputFormat(output_);
    means.screen.Print(action_ == Action::kShow ? RenderSettings(*means.settings, format)
                                                : RenderContexts(*means.settings, format));
    return ExitCode::kOk;
  }

 private:
  ExitCode Use(const Means& means) const {
    const absl::Status used =
        UseContext(means.surroundings.folders.config + "/config.yaml", context_);
    if (!used.ok()) return ReportError(used, means.screen);
    const std::string stronger = Stronger(means.surroundings.settings);
    means.screen.Say(stronger.empty() ? "context " + context_ + " is in use"
                                      : "context " + context_ + " is the file's now, but " +
                                            stronger + " is set and counts before it");
    return ExitCode::kOk;
  }

  // The variable by which the file's context is not the one in use; empty: it is.
  static std::string Stronger(const GivenSettings& environment) {
    if (!environment.server.empty()) return "TACTUS_SERVER";
    return environment.context.empty() ? "" : "TACTUS_CONTEXT";
  }

  enum class Action { kShow, kGetContexts, kUseContext };
  Action action_ = Action::kShow;
  std::string output_ = "table";
  std::string context_;
};

}  // namespace

std::unique_ptr<Verb> MakeConfig() { return std::make_unique<ConfigVerb>(); }

}  // namespace tactus::client
