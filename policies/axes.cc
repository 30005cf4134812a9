#include "policies/axes.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

std::string Listed(const std::vector<std::uint32_t>& sizes) {
  std::string list;
  for (const std::uint32_t size : sizes) {
    if (!list.empty()) list += ',';
    list += std::to_string(size);
  }
  return list;
}

// Nothing: no number, or something behind it.
std::optional<std::uint32_t> ReadNumber(std::string_view text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// The inverse of Listed; records of before have blanks between the numbers.
std::optional<std::vector<std::uint32_t>> ReadList(std::string_view text) {
  std::vector<std::uint32_t> list;
  while (true) {
    const std::size_t at = std::min(text.find_first_of(", "), text.size());
    const std::optional<std::uint32_t> number = ReadNumber(text.substr(0, at));
    if (!number) return std::nullopt;
    list.push_back(*number);
    if (at == text.size()) return list;
    text.remove_prefix(at + 1);
  }
}

// The choice of that name. names: by Choice.
template <typename Choice>
bool ReadChoice(const auto& names, std::string_view name, Choice* choice) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return false;
  *choice = static_cast<Choice>(found - names.begin());
  return true;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    if (space == text.size()) return words;
    text.remove_prefix(space + 1);
  }
}

// "ring", or with the circle behind it, as ValueOf writes it.
bool ReadGraph(const std::vector<std::string_view>& words, Plan* plan) {
  plan->graph.emplace();
  if (words.size() < 2 || words.size() > 3) return false;
  if (!ReadChoice(kTopologyNames, words[1], &*plan->graph)) return false;
  if (words.size() == 2) return true;
  std::optional<std::vector<std::uint32_t>> circle = ReadList(words[2]);
  if (circle) plan->circle = *std::move(circle);
  return !plan->circle.empty();
}

bool ReadSynchronization(std::string_view text, Plan* plan) {
  const std::vector<std::string_view> words = WordsOf(text);
  if (!ReadChoice(kSynchronizationNames, words[0], &plan->synchronization)) return false;
  plan->graph.reset();
  plan->circle.clear();
  if (IsOneStep(plan->synchronization)) plan->period = 1;
  if (plan->synchronization == Synchronization::kDecentlam) return ReadGraph(words, plan);
  if (words.size() != (HasPeriod(*plan) ? 2u : 1u)) return false;
  if (!HasPeriod(*plan)) return true;
  plan->period = ReadNumber(words[1]).value_or(0);
  return plan->period >= 1;
}

std::string SynchronizationText(const Plan& plan) {
  std::string text(NameOf(plan.synchronization));
  if (HasPeriod(plan)) text += " " + std::to_string(plan.period);
  if (plan.graph) text += " " + std::string(NameOf(*plan.graph));
  if (!plan.circle.empty()) text += " " + Listed(plan.circle);
  return text;
}

}  // namespace

std::string_view FieldOf(Axis axis) { return kAxisFields[static_cast<std::size_t>(axis)]; }

std::string NameOf(Axis axis) {
  std::string name(FieldOf(axis));
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string ValueOf(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return Listed(plan.batch_sizes);
    case Axis::kSynchronization:
      return SynchronizationText(plan);
    case Axis::kAggregation:
      return std::string(NameOf(plan.aggregation));
    case Axis::kLearningRate:
      return std::string(NameOf(plan.learning_rate_rule));
    case Axis::kEncoding:
      return std::string(NameOf(plan.encoding));
  }
  return {};
}

std::optional<Plan> WithValue(Plan plan, Axis axis, std::string_view value) {
  bool read = false;
  switch (axis) {
    case Axis::kBatch: {
      std::optional<std::vector<std::uint32_t>> sizes = ReadList(value);
      read = sizes.has_value();
      if (read) plan.batch_sizes = *std::move(sizes);
      break;
    }
    case Axis::kSynchronization:
      read = ReadSynchronization(value, &plan);
      break;
    case Axis::kAggregation:
      read = ReadChoice(kAggregationNames, value, &plan.aggregation);
      break;
    case Axis::kLearningRate:
      read = ReadChoice(kLearningRateRuleNames, value, &plan.learning_rate_rule);
      break;
    case Axis::kEncoding:
      read = ReadChoice(kEncodingNames, value, &plan.encoding);
      break;
  }
  return read ? std::optional(std::move(plan)) : std::nullopt;
}

std::vector<PlanRow> RowsOf(const Plan& plan) {
  return {{"batch_sizes", "batch sizes", plan.batch_sizes},
          {"synchronization", "synchronization", NameOf(plan.synchronization)},
          {"period", "period", plan.period},
          {"aggregation", "aggregation", NameOf(plan.aggregation)},
          {"learning_rate_rule", "learning rate", NameOf(plan.learning_rate_rule)},
          {"encoding", "encoding", NameOf(plan.encoding)}};
}

std::string TextOf(const PlanValue& value) {
  if (const auto* choice = std::get_if<std::string_view>(&value)) return std::string(*choice);
  if (const auto* number = std::get_if<std::uint32_t>(&value)) return std::to_string(*number);
  return Listed(std::get<std::vector<std::uint32_t>>(value));
}

std::vector<std::string> ChoicesOf(const std::vector<PlanRow>& rows) {
  std::vector<std::string> choices;
  for (const PlanRow& row : rows) {
    if (const auto* choice = std::get_if<std::string_view>(&row.value))
      choices.emplace_back(*choice);
    const auto* number = std::get_if<std::uint32_t>(&row.value);
    if (number != nullptr && *number > 1) choices.back() += " " + TextOf(row.value);
  }
  return choices;
}

}  // namespace tactus::policies
