#include "agent/engine/combine/lanes.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace tactus::engine {
namespace {

// The one list of the scalar lanes and their order; writing and reading both follow it.
constexpr std::array kScalars = {&Lanes::samples,
                                 &Lanes::loss_sum,
                                 &Lanes::common_samples,
                                 &Lanes::common_loss_sum,
                                 &Lanes::samples_gradient_norm2,
                                 &Lanes::members,
                                 &Lanes::nonfinite,
                                 &Lanes::plan_votes,
                                 &Lanes::stop_votes,
                                 &Lanes::discard_votes,
                                 &Lanes::suspend_votes,
                                 &Lanes::regroup_votes,
                                 &Lanes::validation_votes,
                                 &Lanes::comparison_votes,
                                 &Lanes::residual_votes};

cuda::LossLane LossOf(double Lanes::*scalar) {
  if (scalar == &Lanes::loss_sum) return cuda::LossLane::kAll;
  if (scalar == &Lanes::common_loss_sum) return cuda::LossLane::kCommon;
  return cuda::LossLane::kNone;
}

std::span<const float> LaneOf(std::span<const float> tail, double Lanes::*scalar) {
  const auto place = std::ranges::find(kScalars, scalar) - kScalars.begin();
  return tail.subspan(static_cast<std::size_t>(place), 1);
}

}  // namespace

std::size_t LaneCount(std::size_t members) { return kScalars.size() + members; }

std::vector<cuda::LaneValue> LaneValuesOf(const OwnLanes& own, std::size_t rank) {
  static_assert(kScalars.size() + 1 <= cuda::kWrittenLanesMax);
  // Where something is not finite, the member is still counted and its votes hold: only what would
  // spoil a sum is left out.
  Lanes sound = own.lanes;
  sound.loss_sum = 0;
  sound.common_loss_sum = 0;
  sound.samples_gradient_norm2 = 0;
  sound.nonfinite = 0;
  Lanes spoilt = sound;
  spoilt.nonfinite = 1;
  spoilt.common_samples = 0;
  std::vector<cuda::LaneValue> values;
  for (const auto scalar : kScalars) {
    values.push_back({.lane = values.size(),
                      .if_finite = static_cast<float>(sound.*scalar),
                      .if_not_finite = static_cast<float>(spoilt.*scalar),
                      .loss = LossOf(scalar)});
    // A factor of 0 says that this lane, too, is what was given.
    if (scalar != &Lanes::samples_gradient_norm2 || own.gradient_samples == 0) continue;
    values.back().norm_factor = own.gradient_samples / own.divisor;
    values.back().norm_divisor = own.divisor;
  }
  const auto samples = static_cast<float>(own.lanes.samples);
  values.push_back(
      {.lane = kScalars.size() + rank, .if_finite = samples, .if_not_finite = samples});
  return values;
}

Lanes ReadLanes(std::span<const float> tail) {
  TACTUS_CHECK(tail.size() >= kScalars.size());
  Lanes lanes;
  std::size_t at = 0;
  for (const auto scalar : kScalars) lanes.*scalar = tail[at++];
  lanes.member_samples = tail.subspan(at);
  return lanes;
}

GateLanes GateLanesOf(std::span<const float> tail) {
  return {.samples = LaneOf(tail, &Lanes::samples), .nonfinite = LaneOf(tail, &Lanes::nonfinite)};
}

Spread SpreadOf(const Lanes& lanes, std::size_t replica_members) {
  Spread spread;
  for (std::size_t i = 0; i < lanes.member_samples.size(); i += replica_members) {
    double samples = 0;
    for (const float of_member : lanes.member_samples.subspan(i, replica_members)) {
      samples += of_member;
    }
    spread.contributors += samples > 0 ? 1 : 0;
    spread.samples_squared += samples * samples;
  }
  return spread;
}

std::vector<std::uint64_t> ToCounts(std::span<const float> member_samples) {
  std::vector<std::uint64_t> counts;
  for (const float samples : member_samples) counts.push_back(static_cast<std::uint64_t>(samples));
  return counts;
}

}  // namespace tactus::engine
