#include "client/verbs/words.h"

#include <charconv>

#include "client/text/flag_checks.h"
#include "client/text/text.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

std::string CheckPriority(const std::string& text) {
  if (ParsePriority(text)) return "";
  return "found \"" + Printable(text) + "\", allowed is a whole number from -1000 to 1000";
}

}  // namespace

CLI::App* AddGroup(CLI::App& program, const std::string& name, const std::string& help) {
  CLI::App* group = program.add_subcommand(name, help);
  group->require_subcommand(1);
  return group->fallthrough();
}

CLI::App& AdminGroup(CLI::App& program) {
  const auto found =
      program.get_subcommands([](const CLI::App* verb) { return verb->get_name() == "admin"; });
  if (!found.empty()) return *found.front();
  return *AddGroup(program, "admin", "Look after the coordinator, its database and the logs");
}

CLI::Validator WholeNumber(std::uint64_t low, std::uint64_t high) {
  return {[=](const std::string& text) { return CheckWhole(text, {low, high}); }, "WHOLE"};
}

CLI::Validator DurationText() { return {CheckDuration, "DURATION"}; }

void AddJob(CLI::App* verb, std::string* name) {
  verb->add_option("job", *name, "The job's name")->required();
}

void AddNode(CLI::App* verb, std::string* name) {
  verb->add_option("node", *name, "The node's name")->required();
}

void AddJobFile(CLI::App* verb, std::string* path) {
  verb->add_option("job_file", *path, "Job file; - is the standard input")->required();
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

void AddPriority(CLI::App* verb, std::string* priority) {
  verb->add_option("--priority", *priority,
                   "Jobs of higher priority come first and may take devices: -1000 to 1000")
      ->check(CLI::Validator(CheckPriority, "PRIORITY"));
}

std::optional<std::int32_t> ParsePriority(const std::string& text) {
  std::int32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < -1000 || number > 1000) return std::nullopt;
  return number;
}

void AddOverrides(CLI::App* verb, std::vector<std::string>* texts) {
  AddRepeated(verb, "--set", texts,
              "Replace a value of the job file: --set adapt.batch.policy=fixed");
}

std::string ReadOverrides(const std::vector<std::string>& texts, std::vector<Override>* overrides) {
  for (const std::string& text : texts) {
    if (!ParseOverride(text, &overrides->emplace_back())) {
      return "--set: found \"" + text +
             "\", allowed is KEY=VALUE, such as adapt.batch.policy=fixed";
    }
  }
  return "";
}

std::string ReadLabels(const std::vector<std::string>& texts,
                       std::map<std::string, std::string>* labels) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return "--label: found \"" + Printable(text) +
             "\", allowed is KEY=VALUE, such as team=vision";
    }
    (*labels)[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return "";
}

}  // namespace tactus::client
