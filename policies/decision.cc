#include "policies/decision.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace tactus::policies {
namespace {

std::string WordOf(Axis axis) {
  std::string word(FieldOf(axis));
  std::ranges::replace(word, '_', '-');
  return word;
}

}  // namespace

std::string IdOf(const DecisionKey& key) {
  return std::to_string(key.plan_version) + "-" + WordOf(key.axis);
}

std::optional<DecisionKey> ParseDecisionId(std::string_view id) {
  DecisionKey key;
  const char* const end = id.data() + id.size();
  const auto number = std::from_chars(id.data(), end, key.plan_version);
  for (const Axis axis : kAxes) {
    key.axis = axis;
    // Whole, so that each decision has one id: no "012-batch".
    if (number.ec == std::errc() && IdOf(key) == id) return key;
  }
  return std::nullopt;
}

}  // namespace tactus::policies
