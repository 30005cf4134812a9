#include "runtime/config_report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/str_join.h"

namespace tactus::runtime {
namespace {

// "--name" or "--name=value" before a "--" stands among the arguments.
bool IsGiven(const std::string& name, const std::vector<std::string>& arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::any_of(arguments.begin(), end, [&name](const std::string& argument) {
    return argument == "--" + name || argument.starts_with("--" + name + "=");
  });
}

// Names of the top level of the file; none when it is not there.
std::set<std::string> NamesIn(const CLI::App& app, const std::string& file) {
  std::set<std::string> names;
  if (file.empty() || !std::filesystem::exists(file)) return names;
  for (const CLI::ConfigItem& item : app.get_config_formatter_base()->from_file(file)) {
    if (item.parents.empty()) names.insert(item.name);
  }
  return names;
}

std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \t#\"'=,[]") == std::string::npos;
  if (plain) return value;
  const char* const mark = value.find('"') == std::string::npos ? "\"" : "'";
  return mark + value + mark;
}

std::string ValueOf(const CLI::Option& option) {
  const bool flag = option.get_expected_min() == 0 && option.get_items_expected_max() == 0;
  if (option.count() > 0) {
    const std::string values = absl::StrJoin(option.reduced_results(), ",");
    return flag && values.empty() ? "true" : values;
  }
  return flag && option.get_default_str().empty() ? "false" : option.get_default_str();
}

}  // namespace

std::vector<ConfigEntry> ConfigInForce(const CLI::App& app,
                                       const std::vector<std::string>& arguments) {
  const CLI::Option* const config = app.get_config_ptr();
  const std::string file =
      config == nullptr || config->count() == 0 ? "" : config->as<std::string>();
  const std::set<std::string> in_file = NamesIn(app, file);
  std::vector<ConfigEntry> entries;
  for (const CLI::Option* option : app.get_options()) {
    if (option == config || !option->get_configurable() || option->get_lnames().empty()) continue;
    ConfigEntry entry = {.name = option->get_lnames().front(), .value = ValueOf(*option)};
    const std::string& variable = option->get_envname();
    const char* const from_environment = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (IsGiven(entry.name, arguments)) {
      entry.source = "flag";
    } else if (in_file.contains(entry.name)) {
      entry.source = "file " + file;
    } else if (from_environment != nullptr && *from_environment != '\0') {
      entry.source = "environment";
    } else {
      entry.source = "default";
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string FormatConfig(const std::vector<ConfigEntry>& entries) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const ConfigEntry& entry : entries) {
    const bool unset = entry.value.empty() && entry.source == "default";
    lines.push_back(unset ? "# " + entry.name + " is not set"
                          : entry.name + " = " + Quoted(entry.value));
    width = std::max(width, lines.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text +=
        lines[i] + std::string(width - lines[i].size() + 2, ' ') + "# " + entries[i].source + "\n";
  }
  return text;
}

}  // namespace tactus::runtime
