#include "coordinator/tape/difference.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "coordinator/codec/step_fields.h"

namespace tactus::tape {
namespace {

using codec::Pack;
using nlohmann::json;

std::string Text(const json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return std::to_string(value.get<double>());
  }
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kValueBytesMax) text = text.substr(0, kValueBytesMax - 3) + "...";
  return text;
}

// Two values at one place; null stands for none.
struct Pair {
  const json* expected = nullptr;
  const json* found = nullptr;

  bool Alike() const { return expected && found && Pack(*expected) == Pack(*found); }
};

// The items of two lists or maps by their index or key.
std::map<std::string, Pair> Children(const Pair& pair) {
  std::map<std::string, Pair> children;
  for (const auto& [key, value] : pair.expected->items()) children[key].expected = &value;
  for (const auto& [key, value] : pair.found->items()) children[key].found = &value;
  return children;
}

Difference Here(const std::string& place, const Pair& pair) {
  return {.place = place,
          .expected = pair.expected ? Text(*pair.expected) : "nothing",
          .found = pair.found ? Text(*pair.found) : "nothing"};
}

// Follows the first difference down to the values that are not alike. Requires: they are not.
Difference Descend(const std::string& place, const Pair& pair) {
  const bool both = pair.expected != nullptr && pair.found != nullptr;
  if (both && pair.expected->type() == pair.found->type() && pair.expected->is_structured()) {
    for (const auto& [key, child] : Children(pair)) {
      if (child.Alike()) continue;
      const char* const between = place.ends_with(':') ? " " : ".";
      return Descend(pair.expected->is_array() ? place + "[" + key + "]" : place + between + key,
                     child);
    }
  }
  return Here(place, pair);
}

std::string KindOf(const json& action) { return action.at("kind").get<std::string>(); }

}  // namespace

std::optional<Difference> FirstDifference(const job::Actions& expected, const job::Actions& found) {
  const std::size_t count = std::max(expected.size(), found.size());
  for (std::size_t i = 0; i < count; ++i) {
    const json one = i < expected.size() ? codec::Writer::Encode(expected[i]) : json();
    const json other = i < found.size() ? codec::Writer::Encode(found[i]) : json();
    const Pair pair = {.expected = i < expected.size() ? &one : nullptr,
                       .found = i < found.size() ? &other : nullptr};
    if (pair.Alike()) continue;
    const std::string place = "action " + std::to_string(i + 1);
    const bool same_kind = pair.expected && pair.found && KindOf(one) == KindOf(other);
    if (!same_kind) return Here(place, pair);
    return Descend(place + ", " + KindOf(one) + ":", pair);
  }
  return std::nullopt;
}

}  // namespace tactus::tape
