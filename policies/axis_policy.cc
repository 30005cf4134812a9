#include "policies/axis_policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

constexpr std::array<std::string_view, 4> kAxes = {"batch", "synchronization", "aggregation",
                                                   "learning rate"};
constexpr std::array<std::string_view, 4> kFields = {"batch", "synchronization", "aggregation",
                                                     "learning_rate"};

std::string Listed(const std::vector<std::uint32_t>& sizes) {
  std::string list;
  for (const std::uint32_t size : sizes) {
    if (!list.empty()) list += ' ';
    list += std::to_string(size);
  }
  return list;
}

}  // namespace

std::string ValueOf(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return Listed(plan.batch_sizes);
    case Axis::kSynchronization:
      return std::string(NameOf(plan.synchronization)) +
             (plan.synchronization == Synchronization::kPeriodic ? " " + std::to_string(plan.period)
                                                                 : "");
    case Axis::kAggregation:
      return std::string(NameOf(plan.aggregation));
    case Axis::kLearningRate:
      return std::string(NameOf(plan.learning_rate_rule));
  }
  return {};
}

std::string_view NameOf(Axis axis) { return kAxes[static_cast<std::size_t>(axis)]; }

std::string_view FieldOf(Axis axis) { return kFields[static_cast<std::size_t>(axis)]; }

void Synchronize(Plan& plan, Synchronization synchronization, std::uint32_t period) {
  const std::uint64_t step =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  const std::uint64_t most =
      std::min<std::uint64_t>(kPeriodMax, kRoundSamplesMax / std::max<std::uint64_t>(step, 1));
  plan.synchronization = synchronization;
  plan.period = synchronization == Synchronization::kEveryStep
                    ? 1
                    : static_cast<std::uint32_t>(
                          std::clamp<std::uint64_t>(period, 1, std::max<std::uint64_t>(most, 1)));
}

}  // namespace tactus::policies
