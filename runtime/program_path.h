// Which file a command's first word names.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus::runtime {

// What would be run if somebody in `folder` said `word`: the file by that name there, where it has
// a slash or is absolute, else the first in the folders of `path`, as PATH lists them. Nothing:
// there is none, or none that this process may run. One thread; the file system is asked.
std::optional<std::string> FindProgram(std::string_view word, const std::string& folder,
                                       std::string_view path);

// What PATH is to whom nobody gave one.
inline constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace tactus::runtime
