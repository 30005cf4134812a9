// A change of plan on record: what was decided, from which numbers, and what came of it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/axes.h"

namespace tactus::policies {

// A number that a decision was made from.
struct Quantity {
  std::string name{};  // for a person: "transfer of a round"
  double value = 0;
  std::string unit{};  // "s", "samples/s"; empty for a ratio

  friend bool operator==(const Quantity&, const Quantity&) = default;
};

// Something else that could have been chosen.
struct Alternative {
  std::string value{};  // as in Decision::to: "delayed", "periodic 16"
  // As Decision::predicted_gain. What is chosen need not be the largest, and the reason says why.
  double predicted_gain = 0;

  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// One axis of one plan. A plan that changes two axes has two decisions.
struct Decision {
  std::uint64_t plan_version = 0;  // of the plan that carries it
  Axis axis = Axis::kBatch;
  std::uint64_t round = 0;  // the last round that was known
  double seconds = 0;       // training time then, summed over the rounds
  std::string from{};       // empty: the job's first plan
  std::string to{};
  std::vector<Quantity> inputs{};
  // What the gain is a gain in: "samples/s", "useful samples/s" (throughput times statistical
  // efficiency), "loss"; empty when the decision promises none.
  std::string metric{};
  double predicted_gain = 0;  // relative: 0.25 = a quarter more than before
  std::vector<Alternative> alternatives{};
  std::string reason{};  // a sentence for a person, never empty
  // What became of the metric, once enough rounds ran under the plan; unset before, and when
  // another plan came too early to tell.
  std::optional<double> measured_gain{};

  friend bool operator==(const Decision&, const Decision&) = default;
};

// Which decision of a job.
struct DecisionKey {
  std::uint64_t plan_version = 0;
  Axis axis = Axis::kBatch;

  friend bool operator==(const DecisionKey&, const DecisionKey&) = default;
};

// "12-batch", "12-learning-rate": as people say and paste it.
std::string IdOf(const DecisionKey& key);

// The inverse; nothing: not such a text.
std::optional<DecisionKey> ParseDecisionId(std::string_view id);

}  // namespace tactus::policies
