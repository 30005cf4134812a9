#include "runtime/json_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "runtime/utf8.h"

namespace tactus::runtime {
namespace {

// Keys whose values are text also where they look like a number: a node may be called "7".
constexpr std::array kTextKeys = {"batch_sizes", "job", "node", "request", "sha256", "version"};

bool IsKeyCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// Where the value of "key=" begins, if `text` begins with one.
std::optional<std::size_t> AfterKey(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  if (!std::ranges::all_of(text.substr(0, equals), IsKeyCharacter)) return std::nullopt;
  return equals + 1;
}

// Where the first "key=value" begins; the text's length when there is none.
std::size_t FieldsBegin(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((at == 0 || text[at - 1] == ' ') && AfterKey(text.substr(at))) return at;
  }
  return text.size();
}

// What runtime::Quoted made of `value`, and what is behind it.
std::pair<std::string, std::string_view> Unquote(std::string_view text) {
  std::string value;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    } else {
      value += text[at];
    }
  }
  return {std::move(value), text.substr(std::min(at + 1, text.size()))};
}

// Up to the next field: a value that is not in quotes may have blanks in it.
std::pair<std::string_view, std::string_view> Bare(std::string_view text) {
  for (std::size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', at + 1)) {
    if (AfterKey(text.substr(at + 1))) return {text.substr(0, at), text.substr(at)};
  }
  return {text, {}};
}

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = Utf8CharacterBytes(text);
    const char c = text.front();
    if (length == 0) {
      out += kUtf8Replacement;
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out + '"';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// By JSON's grammar: no sign but -, no zero before a digit, digits around the point.
bool IsJsonNumber(std::string_view text) {
  const auto digits = [&text] {
    const std::size_t count = std::min(text.size(), text.find_first_not_of("0123456789"));
    text.remove_prefix(count);
    return count;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0' && IsDigit(text[1])) return false;
  if (digits() == 0) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  return text.empty();
}

std::string Typed(std::string_view key, std::string_view value) {
  const bool plain = value == "true" || value == "false" || IsJsonNumber(value);
  const bool name = std::ranges::find(kTextKeys, key) != kTextKeys.end();
  return plain && !name ? std::string(value) : JsonText(value);
}

std::string Fields(std::string_view text) {
  std::set<std::string_view> seen = {"ts", "level", "component", "event", "msg"};
  std::string out;
  while (const std::optional<std::size_t> begin = AfterKey(text)) {
    const std::string_view key = text.substr(0, *begin - 1);
    text.remove_prefix(*begin);
    std::string value;
    std::string_view rest;
    if (text.starts_with('"')) {
      std::tie(value, rest) = Unquote(text);
      value = JsonText(value);
    } else {
      const auto [bare, behind] = Bare(text);
      value = Typed(key, bare);
      rest = behind;
    }
    if (seen.insert(key).second) out += "," + JsonText(key) + ":" + value;
    text = rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
  }
  return out;
}

std::string EventOf(std::string_view phrase) {
  std::string event;
  for (const char c : phrase.substr(0, phrase.find(','))) {
    if (c == ' ' || c == '-') {
      event += '_';
    } else if (IsKeyCharacter(absl::ascii_tolower(c))) {
      event += absl::ascii_tolower(c);
    }
  }
  return event;
}

std::string Timestamp(std::int64_t time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixNanos(time), absl::UTCTimeZone());
}

}  // namespace

std::string JsonLogLine(const LogLine& line) {
  const std::size_t fields = FieldsBegin(line.text);
  std::string_view phrase = line.text.substr(0, fields);
  while (phrase.ends_with(' ')) phrase.remove_suffix(1);
  return "{\"ts\":\"" + Timestamp(line.time) + "\",\"level\":" + JsonText(line.level) +
         ",\"component\":" + JsonText(line.component) + ",\"event\":" + JsonText(EventOf(phrase)) +
         ",\"msg\":" + JsonText(phrase) + Fields(line.text.substr(fields)) + "}\n";
}

}  // namespace tactus::runtime
