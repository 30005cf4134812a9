// A YAML document as plain values with line numbers; the one file that knows yaml-cpp is its .cc.
//
// Bounded on purpose: a job file comes from anywhere, and aliases let a short text stand for a huge
// tree.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::client {

inline constexpr std::size_t kYamlBytesMax = std::size_t{1} << 20;
inline constexpr int kYamlDepthMax = 32;
inline constexpr std::size_t kYamlValuesMax = 10'000;

struct YamlEntry;

// One value of a document. Aliases are resolved.
struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  int line = 0;                    // from 1; 0: not from a file
  std::string text{};              // of a scalar, unquoted
  bool quoted = false;             // a scalar that stood in quotes or in a block, so surely text
  std::vector<YamlValue> items{};  // of a list
  // Of a map, in order; keys may repeat. Without an initialiser: clang would need the whole type
  // here.
  std::vector<YamlEntry> entries;
};

struct YamlEntry {
  std::string key{};
  int line = 0;  // of the key
  YamlValue value{};
};

// A document or, when `error` is not empty, why there is none: one line without the file's name,
// such as "line 3, column 7: end of map not found".
struct YamlDocument {
  YamlValue root{};
  std::string error{};
};

// Parses one document. Never throws. Requires nothing of `text`.
YamlDocument ParseYaml(std::string_view text);

// Sets the value at a dotted path such as "adapt.batch.policy", making maps on the way and
// replacing what is there. Returns an empty string, or why it cannot be: a part of the path is
// empty or is not a map.
std::string SetYamlPath(std::string_view path, YamlValue value, YamlValue* root);

// The first entry's value of that key in a map; null when there is none.
const YamlValue* FindYamlKey(const YamlValue& map, std::string_view key);

// The line of what stands at a path such as "hosts[1].link.rate", or of the innermost value around
// it that there is.
int LineAt(const YamlValue& root, std::string_view path);

// `text` as a YAML scalar: as it is where that reads back as the same text, else in double quotes.
std::string YamlScalar(std::string_view text);

}  // namespace tactus::client
