#include "client/verbs/verb.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace tactus::client {

CLI::App* Verb::AddVerb(CLI::App& below, const std::string& name, const std::string& help,
                        std::function<void()> when_given) {
  CLI::App* words = below.add_subcommand(name, help);
  words->callback([this, when_given = std::move(when_given)] {
    given_ = true;
    if (when_given) when_given();
  });
  return words;
}

}  // namespace tactus::client
