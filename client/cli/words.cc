#include "client/cli/words.h"

#include <functional>
#include <optional>

#include "client/cli/config_words.h"
#include "client/cli/history_words.h"
#include "client/cli/job_words.h"
#include "client/cli/local_words.h"
#include "client/cli/node_words.h"
#include "client/render/exit_code.h"
#include "client/text/flag_checks.h"
#include "client/text/text.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

std::string Footer() {
  return ExitCodesHelp() +
         "Settings, the strongest first:\n"
         "  flag, environment (TACTUS_SERVER, TACTUS_CONTEXT, TACTUS_REQUEST_TIMEOUT,\n"
         "  TACTUS_OUTPUT, NO_COLOR), ~/.config/tactus/config.yaml, default; see tactus config "
         "show\n";
}

}  // namespace

Words::Words() : app("Trains models on unequal GPUs.", "tactus") {
  app.require_subcommand(1);
  app.footer(Footer());
  app.fallthrough();
  CLI::Option* server =
      app.add_option("--server", line.server,
                     "The coordinator, HOST:PORT. Else that of the context, else TACTUS_SERVER, "
                     "else the key server of the configuration file, else 127.0.0.1:7070");
  app.add_option("--context", line.context,
                 "The coordinator of this name in the configuration file's contexts")
      ->excludes(server);
  app.add_option("--request-timeout", line.request_timeout,
                 "How long one call may take, such as 10s (the default)")
      ->check(DurationText());
}

void Words::Complain(const std::string& what) {
  if (problem.empty()) problem = what;
}

AllWords::AllWords() : words_(std::make_unique<Words>()) {
  families_.push_back(std::make_unique<LocalWords>());
  families_.push_back(std::make_unique<JobWords>());
  families_.push_back(std::make_unique<HistoryWords>());
  families_.push_back(std::make_unique<NodeWords>());
  families_.push_back(std::make_unique<ConfigWords>());
  for (const auto& family : families_) family->Declare(*words_);
}

AllWords::~AllWords() = default;

CLI::Validator WholeNumber(std::uint64_t low, std::uint64_t high) {
  return {[=](const std::string& text) { return CheckWhole(text, {low, high}); }, "WHOLE"};
}

CLI::Validator DurationText() { return {CheckDuration, "DURATION"}; }

void AddJob(CLI::App* verb, std::string* name) {
  verb->add_option("job", *name, "The job's name")->required();
}

void AddOutput(CLI::App* verb, std::string* output, const std::vector<std::string>& formats) {
  verb->add_option("-o,--output", *output, "Format on standard output")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
}

void AddLines(CLI::App* verb, std::string* output) {
  verb->add_option("-o", *output, "text or json: one object an event, a line each")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

std::optional<Duration> GivenDuration(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto duration = runtime::ParseDuration(text);
  return duration.ok() ? std::optional<Duration>(*duration) : std::nullopt;
}

std::vector<Override> ReadOverrides(const std::vector<std::string>& texts, Words& words) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    if (!ParseOverride(text, &overrides.emplace_back())) {
      words.Complain("--set: found \"" + text +
                     "\", allowed is KEY=VALUE, such as adapt.batch.policy=fixed");
    }
  }
  return overrides;
}

Labels ReadLabels(const std::vector<std::string>& texts, Words& words) {
  Labels labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      words.Complain("--label: found \"" + Printable(text) +
                     "\", allowed is KEY=VALUE, such as team=vision");
      continue;
    }
    labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return labels;
}

}  // namespace tactus::client
