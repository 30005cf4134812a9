// Which file a command's first word names.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus::runtime {

// What PATH is to whom nobody gave one.
inline constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

// Where somebody stands who says a word.
struct Standpoint {
  std::string folder{};                // that they are in
  std::string_view path = kUsualPath;  // as PATH lists folders
};

// What would be run: the file by that name from the folder, where the word has a slash, else the
// first in the path's folders. Nothing: there is none, or none that this process may run. One
// thread; the file system is asked.
std::optional<std::string> FindProgram(std::string_view word, const Standpoint& from);

}  // namespace tactus::runtime
