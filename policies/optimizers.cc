#include "policies/optimizers.h"

#include <algorithm>
#include <array>

namespace tactus::policies {
namespace {

constexpr std::string_view kBySecondMoment =
    "are divided by the root of the gradient's second moment";

constexpr std::array kOptimizers = {
    OptimizerRow{.name = "sgd", .bending = ""},
    OptimizerRow{.name = "adam", .bending = kBySecondMoment, .second_moment = true},
    OptimizerRow{.name = "adamw", .bending = kBySecondMoment, .second_moment = true},
    OptimizerRow{.name = "lamb", .bending = kBySecondMoment, .second_moment = true},
    OptimizerRow{.name = "lion", .bending = "take the sign of an average gradient"},
};

}  // namespace

std::span<const OptimizerRow> Optimizers() { return kOptimizers; }

bool IsPreconditioned(std::string_view optimizer) {
  const auto* const row = std::ranges::find(kOptimizers, optimizer, &OptimizerRow::name);
  return row == kOptimizers.end() || row->preconditioned();
}

bool HasSecondMoment(std::string_view optimizer) {
  const auto* const row = std::ranges::find(kOptimizers, optimizer, &OptimizerRow::name);
  return row != kOptimizers.end() && row->second_moment;
}

std::string_view BendingOf(std::string_view optimizer) {
  const auto* const row = std::ranges::find(kOptimizers, optimizer, &OptimizerRow::name);
  return row == kOptimizers.end() ? std::string_view() : row->bending;
}

}  // namespace tactus::policies
