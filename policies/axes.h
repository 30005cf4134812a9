// The axes that a plan is made along, and a plan as a list. Whoever names axes or a plan's fields
// one by one walks these.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan.h"

namespace tactus::policies {

// What a job adapts independently of the rest. Records keep the numbers.
enum class Axis { kBatch, kSynchronization, kAggregation, kLearningRate, kEncoding };

// By Axis, as a job file's `adapt` names them.
inline constexpr auto kAxisFields = std::to_array<std::string_view>(
    {"batch", "synchronization", "aggregation", "learning_rate", "encoding"});

// All of them, in the order in which a first plan is made: the others build on the batch sizes.
inline constexpr auto kAxes = [] {
  std::array<Axis, kAxisFields.size()> axes{};
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<Axis>(i);
  return axes;
}();

// One T for each axis.
template <typename T>
class PerAxis {
 public:
  T& operator[](Axis axis) { return values_[static_cast<std::size_t>(axis)]; }
  const T& operator[](Axis axis) const { return values_[static_cast<std::size_t>(axis)]; }

 private:
  std::array<T, kAxes.size()> values_{};
};

// As a job file's `adapt` names it: "batch", "learning_rate".
std::string_view FieldOf(Axis axis);

// For a person: "batch", "learning rate".
std::string NameOf(Axis axis);

// The axis's value of a plan, for a person: "64,64,32,16", "periodic 16", "adasum", "sqrt",
// "float16".
std::string ValueOf(const Plan& plan, Axis axis);

// The plan with the axis's value as ValueOf words it, whatever the plan fits then; nothing where
// the words are no value. Delayed rounds, whose bound ValueOf does not tell, keep the plan's.
std::optional<Plan> WithValue(Plan plan, Axis axis, std::string_view value);

// ---- A plan as a list

// A choice by its name, a number that goes with the choice before it, or one number a rank.
using PlanValue = std::variant<std::string_view, std::uint32_t, std::vector<std::uint32_t>>;

// One field of a plan, without those that say nothing about how rounds run (version, reason).
struct PlanRow {
  std::string_view name{};   // as messages, records and logs have it: "learning_rate_rule"
  std::string_view label{};  // for a person: "learning rate"
  PlanValue value{};
};

// All fields of a plan, in the order in which they are told. Refers to static names alone.
std::vector<PlanRow> RowsOf(const Plan& plan);

// "periodic", "16", "64,64,32,16".
std::string TextOf(const PlanValue& value);

// What is chosen beside the batch sizes, each choice with its number if that is above 1:
// "periodic 16", "adasum", "sqrt", "float16".
std::vector<std::string> ChoicesOf(const std::vector<PlanRow>& rows);

}  // namespace tactus::policies
