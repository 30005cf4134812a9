#include "runtime/daemon_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "runtime/config_report.h"

namespace tactus::runtime {

void DeclareDaemonFlags(CLI::App& app, DaemonFlags& flags) {
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

void ShowConfig(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::fputs(FormatConfig(ConfigInForce(app, arguments)).c_str(), stdout);
}

}  // namespace tactus::runtime
