#include "client/cli/command_line_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "client/cli/program.h"
#include "client/text/names.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

// What is allowed stands in the message of a value that is not.
std::string FailureText(const CLI::App*, const CLI::Error& error) {
  const bool value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  return std::string(error.what()) + (value ? "\n" : "; --help says what is allowed\n");
}

// One such as delete, which takes names or one of its nouns.
bool TakesOperands(const CLI::App& verb) {
  return !verb.get_options([](const CLI::Option* option) { return option->get_positional(); })
              .empty();
}

// CLI11 says only that a verb is missing. Empty when the words begin with all the verbs that it
// takes, or are options, or what the verb before takes, from somewhere on.
std::string UnknownVerb(const std::vector<std::string>& words, CLI::App* app) {
  for (const std::string& word : words) {
    if (TakesOperands(*app)) return "";
    std::vector<std::string> names;
    for (const CLI::App* verb : app->get_subcommands(nullptr)) names.push_back(verb->get_name());
    if (names.empty() || word.starts_with("-")) return "";
    if (std::ranges::find(names, word) == names.end()) {
      const std::optional<std::string> nearest = NearestName(word, names);
      return "'" + Printable(word) + "' is unknown; " +
             (nearest ? "did you mean '" + *nearest + "'? " : "") + "allowed: " + JoinNames(names);
    }
    app = app->get_subcommand(word);
  }
  std::vector<std::string> names;
  for (const CLI::App* verb : app->get_subcommands(nullptr)) names.push_back(verb->get_name());
  if (names.empty() || TakesOperands(*app)) return "";
  return "a verb is missing" + (words.empty() ? "" : " after '" + words.back() + "'") +
         "; allowed: " + JoinNames(names);
}

// CLI11 lists them from the last one on.
std::string UnexpectedText(const std::vector<std::string>& words, const CLI::App& app) {
  std::vector<std::string> extras = app.remaining(true);
  std::string text;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(extras, word);
    if (found == extras.end()) continue;
    extras.erase(found);
    text += " " + Printable(word);
  }
  const bool list = words.size() > 2 && words[0] == "get" &&
                    (words[1] == "jobs" || words[1] == "nodes") && !words[2].starts_with("-");
  const std::string one = list ? words[1].substr(0, words[1].size() - 1) : "";
  return "not expected:" + text +
         (list ? "; one of them is shown by tactus get " + one + " NAME" : "");
}

// The one job that the words are about; empty: there is none, or several.
std::string JobOf(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  const CLI::Option* const job = verb->get_option_no_throw("job");
  return job != nullptr && job->results().size() == 1 ? job->results().front() : "";
}

}  // namespace

ParsedCommandLine ParseCommandLine(const std::vector<std::string>& all) {
  Program program;
  // Of all verbs one takes a program of the user's, with words that look like its own.
  const bool runs = !all.empty() && all.front() == "run";
  const auto end = runs ? std::ranges::find(all, "--") : all.end();
  const std::vector<std::string> words(all.begin(), end);
  CLI::App& app = program.app;
  app.failure_message(FailureText);
  const std::string unknown = UnknownVerb(words, &app);
  if (!unknown.empty()) return {.error = "tactus: " + unknown + "\n"};
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    return {.error = "tactus: " + UnexpectedText(words, app) + "\n"};
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (app.exit(error, out, err) == 0) return {.help = out.str()};
    return {.error = "tactus: " + err.str()};
  }
  const auto given =
      std::ranges::find_if(program.verbs, [](const auto& verb) { return verb->given(); });
  TACTUS_CHECK(given != program.verbs.end());  // the program requires one
  if (end != all.end() && !(*given)->TakeProgram({end + 1, all.end()})) {
    return {.error = "tactus: --: a program and its arguments are expected behind it\n"};
  }
  const std::string problem = (*given)->Check();
  if (!problem.empty()) return {.error = "tactus: " + problem + "\n"};
  return {.verb = std::move(*given), .flags = program.flags, .job = JobOf(app)};
}

}  // namespace tactus::client
