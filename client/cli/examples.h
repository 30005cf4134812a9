// Command lines as people type them, for the ends of --help and of the manual pages.

#pragma once

#include <span>
#include <string>

namespace tactus::client {

struct Example {
  const char* line = "";  // for a shell, from "tactus" on
  const char* note = "";  // what is not seen in it; may be empty
};

// All there are, those of a verb together: one to three of each.
std::span<const Example> AllExamples();

// Those of a verb, or of one of its nouns ("get jobs"); of a noun that has none, its verb's. A line
// each, with its note behind it as a comment.
std::string ExamplesOf(const std::string& words);

}  // namespace tactus::client
