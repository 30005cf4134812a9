#include "client/yaml/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "runtime/utf8.h"

namespace tactus::client {
namespace {

std::string Place(const YAML::Mark& mark) {
  if (mark.is_null()) return "";
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) +
         ": ";
}

// The size of a tree, for the bounds of the header.
struct Extent {
  std::size_t values = 0;
  std::size_t bytes = 0;
  int depth = 0;
};

void Measure(const YamlValue& value, int depth, Extent* extent) {
  ++extent->values;
  extent->bytes += value.text.size();
  extent->depth = std::max(extent->depth, depth);
  for (const YamlValue& item : value.items) Measure(item, depth + 1, extent);
  for (const YamlEntry& entry : value.entries) {
    extent->bytes += entry.key.size();
    Measure(entry.value, depth + 1, extent);
  }
}

// Builds our tree from yaml-cpp's events. After the first fault it ignores the rest, because a
// handler cannot stop the parser. YAML::LoadAll is not used: it never ends on some faulty texts,
// such as ",a: b".
class Builder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) Fail(mark, "text that is not part of the document; is it a second one?");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(mark, {.line = mark.line + 1, .entries = {}}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Fail(mark, "an alias within the value that it stands for");
    if (error_.empty()) Leaf(mark, found->second, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Leaf(mark,
         {.kind = YamlValue::Kind::kScalar,
          .line = mark.line + 1,
          .text = text,
          .quoted = tag == "!" || tag == "tag:yaml.org,2002:str",
          .entries = {}},
         anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, YamlValue::Kind::kList, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, YamlValue::Kind::kMap, anchor);
  }
  void OnMapEnd() override { Close(); }

  const std::string& error() const { return error_; }
  YamlValue& root() { return root_; }

 private:
  // A list or map that is not complete.
  struct OpenValue {
    YamlValue value;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    bool has_key = false;  // a map that waits for the value of its last entry
  };

  void Open(const YAML::Mark& mark, YamlValue::Kind kind, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= kYamlDepthMax) {
      Fail(mark, "nested deeper than " + std::to_string(kYamlDepthMax) + " levels");
    }
    if (!error_.empty()) return;
    open_.push_back({.value = {.kind = kind, .line = mark.line + 1, .entries = {}},
                     .anchor = anchor,
                     .mark = mark});
    Count(mark, {.values = 1});
  }

  void Close() {
    if (!error_.empty()) return;
    OpenValue closed = std::move(open_.back());
    open_.pop_back();
    Add(closed.mark, std::move(closed.value), closed.anchor);
  }

  void Leaf(const YAML::Mark& mark, YamlValue value, YAML::anchor_t anchor) {
    if (!error_.empty()) return;
    Extent extent;
    Measure(value, static_cast<int>(open_.size()), &extent);
    if (extent.depth > kYamlDepthMax) {
      Fail(mark, "nested deeper than " + std::to_string(kYamlDepthMax) + " levels");
    }
    Count(mark, extent);
    if (error_.empty()) Add(mark, std::move(value), anchor);
  }

  // Puts a complete value where it belongs.
  void Add(const YAML::Mark& mark, YamlValue value, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = value;
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    OpenValue& parent = open_.back();
    if (parent.value.kind == YamlValue::Kind::kList) {
      parent.value.items.push_back(std::move(value));
    } else if (parent.has_key) {
      YamlEntry& entry = parent.value.entries.back();
      // A value that is not there is marked where the next one begins.
      if (value.kind == YamlValue::Kind::kNull) value.line = entry.line;
      entry.value = std::move(value);
      parent.has_key = false;
    } else if (value.kind == YamlValue::Kind::kScalar) {
      parent.value.entries.push_back(
          {.key = std::move(value.text), .line = mark.line + 1, .value = {}});
      parent.has_key = true;
    } else {
      Fail(mark, "a key must be a word");
    }
  }

  void Count(const YAML::Mark& mark, const Extent& extent) {
    values_ += extent.values;
    bytes_ += extent.bytes;
    if (values_ > kYamlValuesMax)
      Fail(mark, "more than " + std::to_string(kYamlValuesMax) + " values");
    if (bytes_ > 4 * kYamlBytesMax) Fail(mark, "aliases repeat too much text");
  }

  void Fail(const YAML::Mark& mark, const std::string& what) {
    if (error_.empty()) error_ = Place(mark) + what;
  }

  YamlValue root_;
  std::vector<OpenValue> open_;
  std::map<YAML::anchor_t, YamlValue> anchors_;
  int documents_ = 0;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
  std::string error_;
};

bool IsBlankOrControl(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 ||
         std::iscntrl(static_cast<unsigned char>(c)) != 0;
}

// Words that YAML readers take for something other than text.
bool IsReserved(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords = {"null", "~",  "true", "false", "yes",
                                                              "no",   "on", "off",  "y",     "n"};
  return std::ranges::find(kWords, absl::AsciiStrToLower(std::string(text))) != kWords.end();
}

bool IsPlain(std::string_view text) {
  if (text.empty() || IsReserved(text)) return false;
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
           c == '/' || c == '+' || c == ' ' || c == ',' || c == '(' || c == ')' || c == '=';
  };
  if (!std::all_of(text.begin(), text.end(), plain)) return false;
  const bool word = std::isalpha(static_cast<unsigned char>(text.front())) != 0 ||
                    text.front() == '/' || text.front() == '_';
  return word && !IsBlankOrControl(text.back());
}

// Why `text` is not a text of ours; empty when it is.
std::string NotText(std::string_view text) {
  if (text.size() > kYamlBytesMax) {
    return "larger than " + std::to_string(kYamlBytesMax) + " bytes, which is the most allowed";
  }
  int line = 1;
  while (!text.empty()) {
    const std::size_t length = runtime::Utf8CharacterBytes(text);
    const std::string place = "line " + std::to_string(line) + ": ";
    if (length == 0) return place + "not UTF-8 text";
    if (text.front() == '\0') return place + "a control character, NUL; allowed is text";
    if (text.front() == '\n') ++line;
    text.remove_prefix(length);
  }
  return "";
}

}  // namespace

YamlDocument ParseYaml(std::string_view text) {
  YamlDocument document;
  document.error = NotText(text);
  if (!document.error.empty()) return document;
  Builder builder;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    // The second call finds the end of the text or what should not be there.
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
    document.error = builder.error();
    if (document.error.empty()) document.root = std::move(builder.root());
  } catch (const YAML::Exception& e) {
    document.error = builder.error().empty() ? Place(e.mark) + e.msg : builder.error();
  }
  return document;
}

std::string SetYamlPath(std::string_view path, YamlValue value, YamlValue* root) {
  if (std::count(path.begin(), path.end(), '.') >= kYamlDepthMax)
    return "the path has too many parts";
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  if (key.empty()) return "a part of the path is empty";
  if (root->kind == YamlValue::Kind::kNull) root->kind = YamlValue::Kind::kMap;
  if (root->kind != YamlValue::Kind::kMap)
    return "'" + std::string(key) + "' is asked of what is not a map";
  auto entry = std::find_if(root->entries.begin(), root->entries.end(),
                            [&](const YamlEntry& e) { return e.key == key; });
  if (entry == root->entries.end()) {
    root->entries.push_back({.key = std::string(key), .line = 0, .value = {}});
    entry = std::prev(root->entries.end());
  }
  if (dot != std::string_view::npos)
    return SetYamlPath(path.substr(dot + 1), std::move(value), &entry->value);
  entry->value = std::move(value);
  return "";
}

const YamlValue* FindYamlKey(const YamlValue& map, std::string_view key) {
  for (const YamlEntry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

int LineAt(const YamlValue& root, std::string_view path) {
  const YamlValue* value = &root;
  while (!path.empty()) {
    const std::string_view part =
        path.substr(0, path.find_first_of(".[", 1));  // "hosts", "[1]", ".link"
    path.remove_prefix(part.size());
    std::size_t index = value->items.size();
    if (part.front() == '[') std::from_chars(part.data() + 1, part.data() + part.size(), index);
    const YamlValue* below = index < value->items.size()
                                 ? &value->items[index]
                                 : FindYamlKey(*value, part.substr(part.front() == '.' ? 1 : 0));
    if (below == nullptr) break;
    value = below;
  }
  return value->line;
}

std::string YamlScalar(std::string_view text) {
  if (IsPlain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (std::iscntrl(static_cast<unsigned char>(c)) != 0) {
          std::array<char, 8> escape{};
          std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned char>(c));
          out += escape.data();
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

}  // namespace tactus::client
