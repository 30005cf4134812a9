// A YAML file on this machine, with the values that the command line replaces.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/yaml/yaml_tree.h"

namespace tactus::client {

// `--set adapt.batch.policy=fixed`: replaces one value of the file.
struct Override {
  std::string path{};
  std::string value{};  // YAML
};

// Splits "path=value". False when there is no "=" or no path.
bool ParseOverride(const std::string& text, Override* parsed);

// What was read, or what is wrong with it, a line each, without the file's name. Not empty: `root`
// is not to be used.
struct YamlFile {
  YamlValue root{};
  std::vector<std::string> errors{};
};

// A value from the command line: its parts have no line.
YamlDocument ParseYamlArgument(std::string_view text);

// Parses one document and puts the overrides in; their values have no line.
YamlFile ParseYamlFile(std::string_view text, const std::vector<Override>& overrides);

// A file's text, or why there is none.
struct FileText {
  std::string text{};
  std::string error{};
};

// The text of the file at `path`; "-" is the standard input. Of a text larger than kYamlBytesMax,
// one byte more than that, so that ParseYaml sees that it is too large. `expected`, "a job file",
// is what the error says when `path` is a folder.
FileText ReadYamlText(const std::string& path, const std::string& expected);

}  // namespace tactus::client
