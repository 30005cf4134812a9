// Completion of a command line in a shell: small scripts that ask this program for the words.

#pragma once

#include <string>
#include <vector>

#include "client/cli/command_tree.h"

namespace tactus::client {

// The first word of the hidden command that the scripts call: `tactus __complete WORD...`.
inline constexpr const char* kCompleteWord = "__complete";

// What can stand for the last of `words`, which may be the beginning of a word or empty; the words
// before it are whole. One candidate each, a tab and its help behind it where there is one; or what
// the shell is to ask for itself: "@jobs", "@nodes" (tactus get ... -o name), "@contexts",
// "@files". Pure.
std::vector<std::string> Complete(const VerbWords& program, const std::vector<std::string>& words);

// The script for bash, zsh or fish to load.
std::string CompletionScript(const std::string& shell);

}  // namespace tactus::client
