#include "client/yaml/yaml_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <system_error>
#include <utility>

namespace tactus::client {
namespace {

// Lines refer to the file, so values from the command line have none.
void ForgetLines(YamlValue* value) {
  value->line = 0;
  for (YamlValue& item : value->items) ForgetLines(&item);
  for (YamlEntry& entry : value->entries) {
    entry.line = 0;
    ForgetLines(&entry.value);
  }
}

// Returns what is wrong, or an empty string.
std::string Apply(const Override& change, YamlValue* root) {
  YamlDocument value = ParseYamlArgument(change.value);
  std::string problem = value.error;
  if (problem.empty()) problem = SetYamlPath(change.path, std::move(value.root), root);
  return problem.empty() ? "" : "--set " + change.path + ": " + problem;
}

std::string ReadBounded(std::istream& in) {
  std::string text(kYamlBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

bool ParseOverride(const std::string& text, Override* parsed) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  *parsed = {text.substr(0, equals), text.substr(equals + 1)};
  return true;
}

YamlDocument ParseYamlArgument(std::string_view text) {
  YamlDocument document = ParseYaml(text);
  ForgetLines(&document.root);
  return document;
}

YamlFile ParseYamlFile(std::string_view text, const std::vector<Override>& overrides) {
  YamlFile file;
  YamlDocument document = ParseYaml(text);
  if (!document.error.empty()) {
    file.errors.push_back(document.error);
    return file;
  }
  for (const Override& change : overrides) {
    const std::string problem = Apply(change, &document.root);
    if (!problem.empty()) file.errors.push_back(problem);
  }
  file.root = std::move(document.root);
  return file;
}

FileText ReadYamlText(const std::string& path, const std::string& expected) {
  if (path == "-") return {ReadBounded(std::cin), ""};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return {"", "a folder; expected " + expected};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return {"", errno == 0 ? "cannot be opened" : std::strerror(errno)};
  FileText file = {ReadBounded(in), ""};
  if (in.bad()) file.error = "cannot be read";
  return file;
}

}  // namespace tactus::client
