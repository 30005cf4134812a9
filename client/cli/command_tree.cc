#include "client/cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "client/cli/examples.h"
#include "client/cli/program.h"

namespace tactus::client {
namespace {

// Of "TEXT:{table,json}".
std::vector<std::string> Choices(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::istringstream in(type.substr(begin + 1, end - begin - 1));
  for (std::string choice; std::getline(in, choice, ',');) choices.push_back(choice);
  return choices;
}

// "TEXT" of "TEXT:DURATION" is "DURATION", which says more.
std::string ValueName(const std::string& type) {
  const std::size_t colon = type.find(':');
  if (colon == std::string::npos || type.find('{') != std::string::npos) {
    return type.substr(0, colon);
  }
  return type.substr(colon + 1, type.find(' ', colon) - colon - 1);
}

// `path`: a verb with what it stands behind, "get jobs"; empty: the program.
VerbWords Read(const CLI::App& app, const std::string& path) {
  VerbWords verb = {.name = app.get_name(), .help = app.get_description()};
  if (path.empty()) {
    verb.footer = app.get_footer();
  } else {
    verb.examples = ExamplesOf(path);
  }
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (option->get_positional()) {
      verb.operands.push_back({.name = option->get_name(true),
                               .choices = Choices(type),
                               .help = option->get_description(),
                               .required = option->get_required(),
                               .many = option->get_items_expected_max() > 1});
      continue;
    }
    OptionWords words = {.help = option->get_description(), .fallback = option->get_default_str()};
    for (const std::string& name : option->get_snames()) words.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) words.names.push_back("--" + name);
    const bool flag = option->get_items_expected_max() == 0;
    if (!flag) words.value = ValueName(type);
    if (!flag) words.choices = Choices(type);
    verb.options.push_back(words);
  }
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    verb.verbs.push_back(Read(*below, path + (path.empty() ? "" : " ") + below->get_name()));
  }
  return verb;
}

}  // namespace

VerbWords CommandTree() { return Read(Program().app, ""); }

}  // namespace tactus::client
