#include "coordinator/tape/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "coordinator/codec/document.h"
#include "coordinator/job/record_fields.h"

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

// A part of two lists or maps and where it is: "[3]" or "round".
struct Child {
  std::string place{};
  Pair pair{};
};

std::vector<Child> Items(const json& expected, const json& found) {
  std::vector<Child> items;
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    items.push_back({.place = "[" + std::to_string(i) + "]",
                     .pair = {.expected = i < expected.size() ? &expected[i] : nullptr,
                              .found = i < found.size() ? &found[i] : nullptr}});
  }
  return items;
}

std::vector<Child> Members(const json& expected, const json& found) {
  std::map<std::string, Pair> pairs;
  for (const auto& [key, value] : expected.items()) pairs[key].expected = &value;
  for (const auto& [key, value] : found.items()) pairs[key].found = &value;
  std::vector<Child> members;
  for (const auto& [key, pair] : pairs) members.push_back({.place = key, .pair = pair});
  return members;
}

Difference Here(const std::string& place, const Pair& pair) {
  return {.place = place,
          .expected = pair.expected ? Text(*pair.expected) : "nothing",
          .found = pair.found ? Text(*pair.found) : "nothing"};
}

// Follows the first difference down to the values that are not alike. Requires: they are not.
Difference Descend(const std::string& place, const Pair& pair) {
  const bool both = pair.expected != nullptr && pair.found != nullptr;
  if (!both || pair.expected->type() != pair.found->type() || !pair.expected->is_structured()) {
    return Here(place, pair);
  }
  const bool list = pair.expected->is_array();
  const std::string before = list ? "" : place.ends_with(':') ? " " : ".";
  const auto children = (list ? Items : Members)(*pair.expected, *pair.found);
  const auto child = std::ranges::find_if(children, [](const Child& c) { return !c.pair.Alike(); });
  TACTUS_CHECK(child != children.end());
  return Descend(place + before + child->place, child->pair);
}

std::string KindOf(const json& action) { return action.at("kind").get<std::string>(); }

}  // namespace

std::optional<Difference> FirstDifference(const job::Actions& expected, const job::Actions& found) {
  const std::size_t count = std::max(expected.size(), found.size());
  for (std::size_t i = 0; i < count; ++i) {
    const json one = i < expected.size() ? codec::Document(expected[i]) : json();
    const json other = i < found.size() ? codec::Document(found[i]) : json();
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
