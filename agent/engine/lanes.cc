#include "agent/engine/lanes.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace tactus::engine {
namespace {

// The one list of the scalar lanes and their order; writing and reading both follow it.
constexpr std::array kScalars = {
    &Lanes::samples,    &Lanes::loss_sum,     &Lanes::samples_gradient_norm2,
    &Lanes::members,    &Lanes::nonfinite,    &Lanes::plan_votes,
    &Lanes::stop_votes, &Lanes::discard_votes};

}  // namespace

std::size_t LaneCount(std::size_t members) { return kScalars.size() + members; }

void WriteLanes(const Lanes& lanes, std::span<float> tail) {
  TACTUS_CHECK(tail.size() == LaneCount(lanes.member_samples.size()));
  std::size_t at = 0;
  for (const auto scalar : kScalars) tail[at++] = static_cast<float>(lanes.*scalar);
  for (const std::uint64_t samples : lanes.member_samples) tail[at++] = static_cast<float>(samples);
}

Lanes ReadLanes(std::span<const float> tail) {
  TACTUS_CHECK(tail.size() >= kScalars.size());
  Lanes lanes;
  std::size_t at = 0;
  for (const auto scalar : kScalars) lanes.*scalar = tail[at++];
  for (; at < tail.size(); ++at) {
    lanes.member_samples.push_back(static_cast<std::uint64_t>(std::llround(tail[at])));
  }
  return lanes;
}

}  // namespace tactus::engine
