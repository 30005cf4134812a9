#include "runtime/daemon_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config_report.h"

namespace tactus::runtime {
namespace {

constexpr std::string_view kUnknownKey = "INI was not able to parse ";

// Of what CLI11 could not convert, "Could not convert: --name = value": whether that is a flag.
bool OfFlag(const CLI::App& app, const std::string& text) {
  const std::size_t begin = text.find("--");
  if (begin == std::string::npos) return false;
  const CLI::Option* const option =
      app.get_option_no_throw(text.substr(begin, text.find(' ', begin) - begin));
  return option != nullptr && option->get_expected_min() == 0 &&
         option->get_items_expected_max() == 0;
}

// One line, with the program's name before it.
std::string FailureText(const CLI::App* app, const CLI::Error& error) {
  std::string text = error.what();
  if (text.starts_with(kUnknownKey)) {
    text = "--config: \"" + text.substr(kUnknownKey.size()) +
           "\" is unknown; allowed are the options that --help lists";
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    text += OfFlag(*app, text) ? ", allowed is true or false" : ", allowed is a number";
  }
  const std::string& path = app->get_name();  // as the program was called
  return path.substr(path.rfind('/') + 1) + ": " + text + "\n";
}

}  // namespace

void DeclareDaemonFlags(CLI::App& app, DaemonFlags& flags) {
  app.failure_message(FailureText);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "",
                 "File with these options, one `name = value` a line; the strongest of flag, file, "
                 "environment and default counts");
  app.add_option("--log-level", flags.logging.level, "trace, debug, info, warn, error or off")
      ->envname("TACTUS_LOG_LEVEL")
      ->capture_default_str();
  app.add_option("--log-format", flags.logging.format, "text, or json: an object a line")
      ->envname("TACTUS_LOG_FORMAT")
      ->capture_default_str();
  app.add_flag("--parent-death-signal", flags.parent_death_signal,
               "End when the process that started this one ends");
  CLI::App* config = app.add_subcommand("config", "What the options are");
  config->fallthrough();
  config->require_subcommand(1);
  config
      ->add_subcommand("show", "Print the options in force, each with where it came from, and end")
      ->fallthrough();
}

std::string WithSource(const CLI::App& app, int argc, char** argv, const std::string& message) {
  for (const ConfigEntry& entry : ConfigInForce(app, {argv + 1, argv + argc})) {
    if (!message.starts_with(entry.name + ": ")) continue;
    if (entry.source == "flag" || entry.source == "default") return message;
    const std::string variable =
        entry.source == "environment" ? " " + app.get_option("--" + entry.name)->get_envname() : "";
    return message + " (" + entry.source + variable + ")";
  }
  return message;
}

void ShowConfig(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::fputs(FormatConfig(ConfigInForce(app, arguments)).c_str(), stdout);
}

}  // namespace tactus::runtime
