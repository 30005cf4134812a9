#include "client/cli/answer.h"

#include <algorithm>
#include <cstdio>

#include "client/api/client.h"
#include "client/cli/command_line_parser.h"
#include "client/cli/command_tree.h"
#include "client/cli/completion.h"
#include "client/render/error_lines.h"
#include "client/text/names.h"
#include "client/text/text.h"
#include "identity/enrolment.h"
#include "identity/tls_folder.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

absl::StatusOr<Settings> FindSettings(const GivenSettings& flags,
                                      const Surroundings& surroundings) {
  absl::StatusOr<Settings> settings =
      ResolveSettings({.flags = flags,
                       .environment = surroundings.settings,
                       .config_path = surroundings.folders.config + "/config.yaml"});
  if (!settings.ok()) return settings;
  settings->colour = {.value = surroundings.no_color ? "never" : "auto",
                      .source = surroundings.no_color ? "environment NO_COLOR" : "default"};
  return settings;
}

// Of what was not found: one of the coordinator's jobs may have been meant.
void SuggestJob(const std::string& job, api::Client& client, const Screen& screen) {
  constexpr std::size_t kJobsMax = 1000;
  const absl::StatusOr<v1::ListJobsResponse> jobs = client.ListAllJobs({}, kJobsMax);
  if (!jobs.ok()) return;
  std::vector<std::string> names;
  for (const v1::Job& one : jobs->jobs()) names.push_back(Printable(ShortName(one.name())));
  const std::string name = ShortName(job);
  if (std::ranges::find(names, name) != names.end()) return;
  if (const auto nearest = NearestName(name, names)) screen.Say("did you mean " + *nearest + "?");
}

// A certificate of which two thirds are over is renewed by whatever is done with it. Whether that
// was possible changes nothing of what is done.
void RenewIfDue(const Settings& settings, Duration timeout, const Screen& screen) {
  const std::string& folder = settings.tls_dir.value;
  if (folder.empty()) return;
  const absl::StatusOr<identity::Certificate> own = identity::CertificateOfFolder(folder);
  const std::int64_t now = runtime::WallSeconds();
  if (!own.ok() || now < identity::RenewalTime(*own) || now >= own->end) return;
  const absl::Status renewed = identity::RenewOver(folder, settings.server.value, timeout).status();
  // That nobody answers, the verb says itself.
  if (renewed.ok() || absl::IsUnavailable(renewed) || absl::IsDeadlineExceeded(renewed)) return;
  screen.Say("your certificate is valid until " + runtime::UtcText(own->end) +
             " and was not renewed: " + std::string(renewed.message()));
}

}  // namespace

ExitCode Answer(const std::vector<std::string>& words, const Surroundings& surroundings,
                const Screen& screen) {
  if (!words.empty() && words.front() == kCompleteWord) {
    for (const std::string& line : Complete(CommandTree(), {words.begin() + 1, words.end()})) {
      screen.Print(line + "\n");
    }
    return ExitCode::kOk;
  }
  const ParsedCommandLine parsed = ParseCommandLine(words);
  if (parsed.verb == nullptr) {
    screen.Print(parsed.help);
    std::fputs(parsed.error.c_str(), stderr);
    return parsed.error.empty() ? ExitCode::kOk : ExitCode::kUsage;
  }
  Verb& verb = *parsed.verb;
  Means means = {.screen = screen, .surroundings = surroundings};
  if (verb.need() == Need::kNothing) return verb.Run(means);
  const absl::StatusOr<Settings> settings = FindSettings(parsed.flags, surroundings);
  if (!settings.ok()) {
    ReportError(settings.status(), screen);
    return ExitCode::kUsage;
  }
  means.settings = &*settings;
  if (verb.need() == Need::kSettings) return verb.Run(means);
  const auto timeout = runtime::ParseDuration(settings->request_timeout.value);
  if (!timeout.ok()) return ReportError(timeout.status(), screen);
  RenewIfDue(*settings, *timeout, screen);
  const absl::StatusOr<std::unique_ptr<api::Client>> client =
      api::Client::Dial({.server = settings->server.value,
                         .security = {.tls_dir = settings->tls_dir.value,
                                      .insecure = settings->insecure.value == kYes},
                         .request_timeout = *timeout});
  if (!client.ok()) {
    ReportError(client.status(), screen);
    return ExitCode::kUsage;
  }
  means.client = client->get();
  const ExitCode code = verb.Run(means);
  if (code == ExitCode::kNotFound && !parsed.job.empty()) SuggestJob(parsed.job, **client, screen);
  return code;
}

}  // namespace tactus::client
