#include "client/yaml/yaml_fields.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "client/text/names.h"
#include "client/text/quantity.h"
#include "client/text/text.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

constexpr std::size_t kShownMax = 60;

std::string LineSuffix(int line) { return line == 0 ? "" : " (line " + std::to_string(line) + ")"; }

std::string Shown(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::kNull:
      return "nothing";
    case YamlValue::Kind::kList:
      return value.items.empty() ? "an empty list" : "a list";
    case YamlValue::Kind::kMap:
      return "a map";
    case YamlValue::Kind::kScalar:
      break;
  }
  const std::string text = Printable(value.text);
  const std::string shown = Cut(text, kShownMax);
  return "\"" + shown + (shown.size() < text.size() ? "..." : "") + "\"";
}

bool IsOneLine(const std::string& text) { return !text.empty() && Printable(text) == text; }

}  // namespace

YamlFields::YamlFields(const YamlValue& value, std::string path, std::vector<std::string>& errors)
    : map_(&value), path_(std::move(path)), errors_(&errors) {
  if (value.kind == YamlValue::Kind::kMap) {
    for (const YamlEntry& entry : value.entries) {
      const YamlValue* first = FindYamlKey(value, entry.key);
      if (first != &entry.value) {
        errors_->push_back((path_.empty() ? "" : path_ + ".") + Printable(entry.key) +
                           ": given twice" + LineSuffix(entry.line));
      }
    }
    return;
  }
  errors_->push_back((path_.empty() ? "the file" : path_) + ": found " + Shown(value) +
                     ", allowed is a map" + LineSuffix(value.line));
}

const YamlValue* YamlFields::Find(const std::string& key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.push_back(key);
  return FindYamlKey(*map_, key);
}

bool YamlFields::Has(const std::string& key) { return Find(key) != nullptr; }

bool YamlFields::HasMap(const std::string& key) {
  const YamlValue* value = Find(key);
  return value != nullptr && value->kind == YamlValue::Kind::kMap;
}

bool YamlFields::HasWord(const std::string& key, const std::string& word) {
  const YamlValue* value = Find(key);
  return value != nullptr && value->kind == YamlValue::Kind::kScalar && value->text == word;
}

void YamlFields::Add(const std::string& key, const std::string& what) {
  int line = map_->line;
  for (const YamlEntry& entry : map_->entries) {
    if (entry.key == key) line = entry.value.line;
  }
  const std::string dot = path_.empty() || key.empty() ? "" : ".";
  errors_->push_back(path_ + dot + Printable(key) + ": " + what + LineSuffix(line));
}

void YamlFields::Refuse(const std::string& key, const std::string& allowed) {
  const YamlValue* value = Find(key);
  if (value == nullptr) return Add(key, "is missing; give " + allowed);
  Add(key, "found " + Shown(*value) + ", allowed is " + allowed);
}

const std::string* YamlFields::Scalar(const std::string& key, const std::string& allowed) {
  const YamlValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (value->kind == YamlValue::Kind::kScalar) return &value->text;
  Refuse(key, allowed);
  return nullptr;
}

void YamlFields::Number(const std::string& key, const spec::Interval& allowed, double* value) {
  const std::string words = "a number, " + allowed.text;
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  const std::optional<double> number = ParseNumber(*text);
  if (!number || !spec::Contains(allowed, *number)) return Refuse(key, words);
  *value = *number;
}

void YamlFields::Whole(const std::string& key, const spec::Bounds& allowed, std::uint64_t* value) {
  const std::string words =
      "a whole number, " + std::to_string(allowed.low) + " to " + std::to_string(allowed.high);
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  std::uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end || number < allowed.low || number > allowed.high) {
    return Refuse(key, words);
  }
  *value = number;
}

void YamlFields::Text(const std::string& key, std::string* value) {
  const std::string words = "a text of one line";
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  if (!IsOneLine(*text)) return Refuse(key, words);
  *value = *text;
}

void YamlFields::Flag(const std::string& key, bool* value) {
  const std::string words = "true or false";
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  if (*text != "true" && *text != "false") return Refuse(key, words);
  *value = *text == "true";
}

void YamlFields::Seconds(const std::string& key, const spec::Interval& allowed, double* value) {
  const std::string words = "a duration, " + allowed.text + ", such as 2.4ms, 90s, 1h30m";
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  const absl::StatusOr<Duration> duration = runtime::ParseDuration(*text);
  if (!duration.ok()) return Refuse(key, words);
  const double seconds = static_cast<double>(duration->count()) / 1e9;  // rounded once: 30s is 30
  if (!spec::Contains(allowed, seconds)) return Refuse(key, words);
  *value = seconds;
}

void YamlFields::Rate(const std::string& key, double* bytes_per_second) {
  const std::string words = "a rate of 1kbit or more, such as 100mbit, 1gbit";
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  const std::optional<double> rate = ParseRate(*text);
  if (!rate || *rate < kRateMin) return Refuse(key, words);
  *bytes_per_second = *rate;
}

void YamlFields::Size(const std::string& key, double* bytes) {
  const std::string words = "a size of 0 or more, such as 128KiB, 1MiB";
  const std::string* text = Scalar(key, words);
  if (text == nullptr) return;
  const std::optional<double> size = ParseSize(*text);
  if (!size) return Refuse(key, words);
  *bytes = *size;
}

void YamlFields::Choice(const std::string& key, const std::vector<std::string>& allowed,
                        std::size_t* value) {
  const std::string* text = Scalar(key, spec::Enumerate(allowed));
  if (text == nullptr) return;
  const auto found = std::ranges::find(allowed, *text);
  if (found == allowed.end()) return Refuse(key, spec::Enumerate(allowed));
  *value = static_cast<std::size_t>(found - allowed.begin());
}

std::optional<YamlFields> YamlFields::Map(const std::string& key) {
  const YamlValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  return YamlFields(*value, path_.empty() ? key : path_ + "." + key, *errors_);
}

const std::vector<YamlValue>& YamlFields::List(const std::string& key) {
  static const std::vector<YamlValue> kNone;
  const YamlValue* value = Find(key);
  if (value == nullptr) return kNone;
  if (value->kind == YamlValue::Kind::kList) return value->items;
  Refuse(key, "a list");
  return kNone;
}

std::string YamlFields::ItemPath(const std::string& key, std::size_t index) const {
  return (path_.empty() ? "" : path_ + ".") + key + "[" + std::to_string(index) + "]";
}

std::vector<YamlFields> YamlFields::Maps(const std::string& key) {
  const std::vector<YamlValue>& items = List(key);
  std::vector<YamlFields> maps;
  for (std::size_t i = 0; i < items.size(); ++i) {
    maps.emplace_back(items[i], ItemPath(key, i), *errors_);
  }
  return maps;
}

std::vector<std::string> YamlFields::Texts(const std::string& key) {
  std::vector<std::string> texts;
  for (const YamlValue& item : List(key)) {
    if (item.kind == YamlValue::Kind::kScalar && IsOneLine(item.text)) {
      texts.push_back(item.text);
      continue;
    }
    errors_->push_back(ItemPath(key, texts.size()) + ": found " + Shown(item) +
                       ", allowed is a text of one line" + LineSuffix(item.line));
    return {};
  }
  return texts;
}

void YamlFields::RefuseOthers() {
  for (const YamlEntry& entry : map_->entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    const std::optional<std::string> nearest = NearestName(entry.key, known_);
    const std::string dot = path_.empty() ? "" : ".";
    errors_->push_back(path_ + dot + Printable(entry.key) + ": unknown; " +
                       (nearest ? "did you mean " + *nearest + "? " : "") +
                       "allowed: " + JoinNames(known_) + LineSuffix(entry.line));
  }
}

}  // namespace tactus::client
