#include "runtime/program_path.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_split.h"

namespace tactus::runtime {
namespace {

bool IsProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> FindProgram(std::string_view word, const Standpoint& from) {
  std::vector<std::string> places = absl::StrSplit(std::string(from.path), ':');
  if (word.find('/') != std::string_view::npos) places = {""};
  for (const std::string& place : places) {
    const std::filesystem::path found = std::filesystem::path(from.folder) / place / word;
    if (IsProgram(found)) return found.lexically_normal().string();
  }
  return std::nullopt;
}

}  // namespace tactus::runtime
