// A verb of the command line: the words it takes and what it does with them. Everything of
// `tactus pause` is in pause.cc; client/cli/program.cc lists them all.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/api/client.h"
#include "client/local/settings.h"
#include "client/local/surroundings.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace CLI {
class App;
}

namespace tactus::client {

// What a verb needs beside its words. Each needs what is before it, too.
enum class Need { kNothing, kSettings, kCoordinator };

// What a verb may use.
struct Means {
  const Screen& screen;
  const Surroundings& surroundings;
  const Settings* settings = nullptr;  // set from kSettings on
  api::Client* client = nullptr;       // set for kCoordinator
};

// Serves one command line: declared, then perhaps given, checked and run. Outlives the parsing of
// the App that it declared itself in.
class Verb {
 public:
  Verb() = default;
  virtual ~Verb() = default;
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  // Adds its words below `program`, whose --help lists the verbs in the order of these calls.
  virtual void Declare(CLI::App& program) = 0;

  // True when the words that were parsed are this verb's.
  bool given() const { return given_; }

  // The words behind a "--", which are another program's: whether it takes them. Before Check.
  virtual bool TakeProgram(const std::vector<std::string>&) { return false; }

  // What is wrong with its words that CLI11 cannot see, a line; empty: nothing. Called once,
  // before the others below.
  virtual std::string Check() { return ""; }

  virtual Need need() const { return Need::kCoordinator; }

  // Prints data and messages; returns how the program ends. Requires: `means` are what it needs.
  virtual ExitCode Run(const Means& means) = 0;

 protected:
  // A word of `below` that stands for this verb, or for one of its nouns: calls `when_given`, too.
  CLI::App* AddVerb(CLI::App& below, const std::string& name, const std::string& help,
                    std::function<void()> when_given = nullptr);

 private:
  bool given_ = false;
};

// A verb whose words fill a struct that the rooms below know.
template <typename Command>
class CommandVerb : public Verb {
 public:
  // Requires: checked.
  const Command& command() const { return command_; }

 protected:
  Command command_;
};

}  // namespace tactus::client
