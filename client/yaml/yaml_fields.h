// Reading a YAML file by rules written in code: every key that was asked for is known, every other
// one is a mistake, and so is every value out of its range.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/yaml/yaml_tree.h"
#include "coordinator/spec/field_checks.h"

namespace tactus::client {

// One map of a file. The methods that read leave `value` as it is when the key is not there or
// what is there is a mistake, and then add a line to `errors`, such as
//
//   hosts[1].link.rate: found "-5mbit", allowed is a rate of 1kbit or more, such as 1gbit (line 7)
//
// without "(line 7)" where the value is not from a file.
class YamlFields {
 public:
  // What is not a map is a mistake and read as an empty one; an empty path is the file's root.
  // `value` and `errors` outlive this object.
  YamlFields(const YamlValue& value, std::string path, std::vector<std::string>& errors);

  // The key is there; asking makes it known.
  bool Has(const std::string& key);
  // The same, and a map stands there; and this word stands there.
  bool HasMap(const std::string& key);
  bool HasWord(const std::string& key, const std::string& word);

  void Number(const std::string& key, const spec::Interval& allowed, double* value);
  void Whole(const std::string& key, const spec::Bounds& allowed, std::uint64_t* value);
  void Text(const std::string& key, std::string* value);  // not empty, in one line
  void Flag(const std::string& key, bool* value);
  void Seconds(const std::string& key, const spec::Interval& allowed, double* value);
  void Rate(const std::string& key, double* bytes_per_second);  // kRateMin or more
  void Size(const std::string& key, double* bytes);             // 0 or more
  // `value`: index of the name in `allowed`.
  void Choice(const std::string& key, const std::vector<std::string>& allowed, std::size_t* value);

  // The map at `key`, if there is one.
  std::optional<YamlFields> Map(const std::string& key);

  // The values of the list at `key`; empty when there is none. Their paths are ItemPath's.
  const std::vector<YamlValue>& List(const std::string& key);
  std::string ItemPath(const std::string& key, std::size_t index) const;
  // The maps that a list is made of.
  std::vector<YamlFields> Maps(const std::string& key);
  // A list of one-line texts.
  std::vector<std::string> Texts(const std::string& key);

  // Adds "PATH.KEY: WHAT (line N)" with the key's line, or the map's when it has none. Of an empty
  // key: "PATH: WHAT (line N)".
  void Add(const std::string& key, const std::string& what);
  // Adds 'found "TEXT", allowed is ALLOWED' with the text at the key.
  void Refuse(const std::string& key, const std::string& allowed);

  // Every key that no method was asked for is a mistake. Call it last.
  void RefuseOthers();

 private:
  const YamlValue* Find(const std::string& key);
  // The text at `key`; null, and a mistake, when something other than a text is there.
  const std::string* Scalar(const std::string& key, const std::string& allowed);

  const YamlValue* map_;
  std::string path_;
  std::vector<std::string>* errors_;
  std::vector<std::string> known_{};  // in the order of asking
};

// Slower, and a model's parameters would be under way for years. [bytes/s]
inline constexpr double kRateMin = 125;

// Intervals of durations in seconds.
inline const spec::Interval kBriefly = {.low = 0, .high = 3600, .text = "0 to 1h"};
inline const spec::Interval kBrieflyAboveZero = {
    .low = 0, .low_included = false, .high = 3600, .text = "above 0 to 1h"};
inline const spec::Interval kLong = {.low = 0, .high = 365 * 86400.0, .text = "0 to 365d"};
inline const spec::Interval kLongAboveZero = {
    .low = 0, .low_included = false, .high = 365 * 86400.0, .text = "above 0 to 365d"};

}  // namespace tactus::client
