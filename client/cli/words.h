// The declarations of all verbs, and what they have in common. With its families (job_words.h and
// so on) the only part that knows CLI11.

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/verbs/command_line.h"

namespace tactus::client {

// What a family of verbs declares into, and where it puts the command that was given. Outlives the
// families.
struct Words {
  CLI::App app;
  CommandLine line{};
  std::string problem{};  // what CLI11 cannot see; the first one counts

  Words();
  void Complain(const std::string& what);
};

// The options of one family and the storage behind them.
class WordFamily {
 public:
  WordFamily() = default;
  virtual ~WordFamily() = default;
  WordFamily(const WordFamily&) = delete;
  WordFamily& operator=(const WordFamily&) = delete;
  // Adds the verbs, in the order in which --help lists them.
  virtual void Declare(Words& words) = 0;
};

// All families, declared. One use: parse once, or read the declarations.
class AllWords {
 public:
  AllWords();
  ~AllWords();
  CLI::App* app() { return &words_->app; }
  Words& words() { return *words_; }

 private:
  std::vector<std::unique_ptr<WordFamily>> families_;
  std::unique_ptr<Words> words_;
};

CLI::Validator WholeNumber(std::uint64_t low, std::uint64_t high);
CLI::Validator DurationText();

// The operand that names a job.
void AddJob(CLI::App* verb, std::string* name);

// -o, --output with these formats; shows `*output` as its default.
void AddOutput(CLI::App* verb, std::string* output, const std::vector<std::string>& formats);

// -o text or json, for verbs that print events.
void AddLines(CLI::App* verb, std::string* output);

// Of an option that was given; not given: nothing. Requires: DurationText checked it.
std::optional<Duration> GivenDuration(const std::string& text);

// KEY=VALUE each.
std::vector<Override> ReadOverrides(const std::vector<std::string>& texts, Words& words);
Labels ReadLabels(const std::vector<std::string>& texts, Words& words);

}  // namespace tactus::client
