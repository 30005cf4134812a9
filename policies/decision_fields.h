// The fields of decisions, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "policies/decision.h"

namespace tactus {

template <>
inline constexpr int kEnumMax<policies::Axis> = static_cast<int>(policies::kAxes.size()) - 1;

}  // namespace tactus

namespace tactus::policies {

void Fields(auto& archive, Of<Quantity> auto& quantity) {
  archive("name", quantity.name);
  archive("value", quantity.value);
  archive("unit", quantity.unit);
}

void Fields(auto& archive, Of<Alternative> auto& alternative) {
  archive("value", alternative.value);
  archive("predicted_gain", alternative.predicted_gain);
}

void Fields(auto& archive, Of<Decision> auto& decision) {
  archive("plan_version", decision.plan_version);
  archive("axis", decision.axis);
  archive("round", decision.round);
  archive("seconds", decision.seconds);
  archive("from", decision.from);
  archive("to", decision.to);
  archive("inputs", decision.inputs);
  archive("metric", decision.metric);
  archive("predicted_gain", decision.predicted_gain);
  archive("alternatives", decision.alternatives);
  archive("reason", decision.reason);
  archive("measured_gain", decision.measured_gain);
}

}  // namespace tactus::policies
