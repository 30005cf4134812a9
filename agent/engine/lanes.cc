#include "agent/engine/lanes.h"

#include <array>

#include "base/check.h"

namespace tactus::engine {
namespace {

// The one list of the scalar lanes and their order; writing and reading both follow it.
constexpr std::array kScalars = {
    &Lanes::samples,    &Lanes::loss_sum,      &Lanes::samples_gradient_norm2,
    &Lanes::members,    &Lanes::nonfinite,     &Lanes::plan_votes,
    &Lanes::stop_votes, &Lanes::discard_votes, &Lanes::suspend_votes};

}  // namespace

std::size_t LaneCount(std::size_t members) { return kScalars.size() + members; }

void WriteLanes(const Lanes& own, std::size_t rank, std::span<float> tail) {
  TACTUS_CHECK(rank + kScalars.size() < tail.size());
  std::size_t at = 0;
  for (const auto scalar : kScalars) tail[at++] = static_cast<float>(own.*scalar);
  tail[at + rank] = static_cast<float>(own.samples);
}

Lanes ReadLanes(std::span<const float> tail) {
  TACTUS_CHECK(tail.size() >= kScalars.size());
  Lanes lanes;
  std::size_t at = 0;
  for (const auto scalar : kScalars) lanes.*scalar = tail[at++];
  lanes.member_samples = tail.subspan(at);
  return lanes;
}

Spread SpreadOf(const Lanes& lanes) {
  Spread spread;
  for (const double samples : lanes.member_samples) {
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
