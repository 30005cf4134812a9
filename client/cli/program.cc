#include "client/cli/program.h"

#include <string>

#include "client/cli/examples.h"
#include "client/render/exit_code.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {

// Each is in the file of its name, in client/verbs or, where it shows these words, here.
using MakeVerb = std::unique_ptr<Verb>();
MakeVerb MakeRun, MakeDemo, MakeSimulate, MakeLayouts, MakeReplay, MakeSubmit, MakeSweep, MakeGet,
    MakeDescribe, MakeExplain, MakeWatch, MakeWait, MakeLogs, MakeUpdate, MakeRevert, MakeCancel,
    MakeDelete, MakePause, MakeResume, MakeDownload, MakeTop, MakePlot, MakeTrace, MakeCordon,
    MakeDrain, MakeUncordon, MakeBackup, MakeLogLevel, MakeIntegrityCheck, MakeInitAuthority,
    MakeRotateAuthority, MakeIssue, MakeToken, MakeLogin, MakeRevoke, MakeAudit, MakeChaos,
    MakeDoctor, MakeClean, MakeConfig, MakeCompletion, MakeMan, MakeVerify, MakeSlurm, MakeVersion;

namespace {

// In the order of --help.
constexpr MakeVerb* kVerbs[] = {MakeRun,           MakeDemo,
                                MakeSimulate,      MakeLayouts,
                                MakeReplay,        MakeSubmit,
                                MakeSweep,         MakeGet,
                                MakeDescribe,      MakeExplain,
                                MakeWatch,         MakeWait,
                                MakeLogs,          MakeUpdate,
                                MakeRevert,        MakeCancel,
                                MakeDelete,        MakePause,
                                MakeResume,        MakeDownload,
                                MakeVerify,        MakeTop,
                                MakePlot,          MakeTrace,
                                MakeCordon,        MakeDrain,
                                MakeUncordon,      MakeBackup,
                                MakeLogLevel,      MakeIntegrityCheck,
                                MakeInitAuthority, MakeRotateAuthority,
                                MakeIssue,         MakeToken,
                                MakeRevoke,        MakeAudit,
                                MakeLogin,         MakeSlurm,
                                MakeChaos,         MakeDoctor,
                                MakeClean,         MakeConfig,
                                MakeCompletion,    MakeMan,
                                MakeVersion};

std::string Footer() {
  return ExitCodesHelp() +
         "Settings, the strongest first:\n"
         "  flag, environment (TACTUS_SERVER, TACTUS_CONTEXT, TACTUS_TLS_DIR,\n"
         "  TACTUS_INSECURE, TACTUS_REQUEST_TIMEOUT, TACTUS_OUTPUT, NO_COLOR), "
         "~/.config/tactus/config.yaml, default; see tactus config "
         "show\n";
}

// Behind what stands below the words of all.
void AddExamples(CLI::App& verb, const std::string& words) {
  verb.footer(Footer() + "Examples:\n" + Indented(ExamplesOf(words)));
  for (CLI::App* noun : verb.get_subcommands(nullptr)) {
    AddExamples(*noun, words + " " + noun->get_name());
  }
}

}  // namespace

Program::Program() : app("Trains models on unequal GPUs.", "tactus") {
  app.require_subcommand(1);
  app.set_version_flag("--version", "tactus " TACTUS_VERSION);
  app.footer(Footer());
  app.fallthrough();
  CLI::Option* server =
      app.add_option(
             "--server", flags.server,
             "The coordinator, HOST:PORT; of several that share a store, all with commas between "
             "them. Else that of the context, else TACTUS_SERVER, "
             "else the key server of the configuration file, else 127.0.0.1:7070")
          ->check([](const std::string& text) {
            return text.empty() ? "--server: found nothing, allowed is HOST:PORT" : "";
          });
  app.add_option("--context", flags.context,
                 "The coordinator of this name in the configuration file's contexts")
      ->excludes(server);
  app.add_option("--tls-dir", flags.tls_dir,
                 "Folder with ca.pem, cert.pem and key.pem, as tactus admin issue --user writes "
                 "them. Else TACTUS_TLS_DIR, else the key tls_dir of the context or the file");
  app.add_flag_callback(
      "--insecure", [this] { flags.insecure = kYes; },
      "Plain, without identities, though the address is not loopback");
  app.add_option("--request-timeout", flags.request_timeout,
                 "How long one call may take, such as 10s (the default)")
      ->check(DurationText());
  for (MakeVerb* make : kVerbs) verbs.emplace_back(make())->Declare(app);
  for (CLI::App* verb : app.get_subcommands(nullptr)) AddExamples(*verb, verb->get_name());
}

}  // namespace tactus::client
