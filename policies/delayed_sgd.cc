#include "policies/delayed_sgd.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus::policies {
namespace {

bool Contributes(const DelayedMember& member) { return member.batch_samples > 0; }

// When START closes the round that the members began at `begun`.
double StartSeconds(const DelayedGroup& group, const std::vector<double>& begun,
                    double transfer_end) {
  double start = transfer_end;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const DelayedMember& member = group.members[i];
    if (!Contributes(member)) continue;
    start = std::max(start, begun[i] + group.batches_min * member.batch_seconds);
  }
  return start;
}

// Micro-batches up to the first boundary at or after START, `seconds` after the member began.
std::uint32_t BatchesUntil(const DelayedGroup& group, const DelayedMember& member, double seconds) {
  if (!Contributes(member)) return 0;
  const double batches = std::ceil(seconds / member.batch_seconds - kBoundarySlack);
  return static_cast<std::uint32_t>(
      std::clamp<double>(batches, group.batches_min, group.batches_max));
}

// Runs the group's round k: `begun` in, the members' beginnings of round k+1 out.
DelayedRound RunRound(const DelayedGroup& group, double transfer_end, std::vector<double>& begun) {
  DelayedRound round;
  round.start_seconds = StartSeconds(group, begun, transfer_end);
  round.transfer_begin_seconds = round.start_seconds;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const DelayedMember& member = group.members[i];
    const std::uint32_t batches = BatchesUntil(group, member, round.start_seconds - begun[i]);
    round.batches.push_back(batches);
    round.samples += std::uint64_t{batches} * member.batch_samples;
    // A member that had all it may have waited for START.
    begun[i] = std::max(round.start_seconds, begun[i] + batches * member.batch_seconds);
    round.transfer_begin_seconds = std::max(round.transfer_begin_seconds, begun[i]);
  }
  round.transfer_end_seconds = round.transfer_begin_seconds + group.transfer_seconds;
  return round;
}

}  // namespace

double StabilityLimit(double momentum) { return 2 * (1 + momentum); }

double DelayedStabilityLimit(double momentum, bool look_ahead) {
  const double rest = 1 - momentum;
  if (!look_ahead) return rest;
  const double r = 1 - momentum * momentum;
  return 2 * rest / (r + std::sqrt(r * r + 4 * momentum * momentum * rest));
}

std::vector<DelayedRound> DelayedTimeline(const DelayedGroup& group, std::uint32_t rounds) {
  TACTUS_CHECK(std::ranges::any_of(group.members, Contributes));
  TACTUS_CHECK(group.batches_min >= 1 && group.batches_max >= group.batches_min);
  std::vector<double> begun(group.members.size(), 0.0);
  std::vector<DelayedRound> timeline;
  double transfer_end = 0;
  for (std::uint32_t k = 0; k < rounds; ++k) {
    timeline.push_back(RunRound(group, transfer_end, begun));
    transfer_end = timeline.back().transfer_end_seconds;
  }
  return timeline;
}

DelayedPace PredictDelayedPace(const DelayedGroup& group, std::uint32_t rounds) {
  TACTUS_CHECK(rounds > 0);
  const std::vector<DelayedRound> timeline = DelayedTimeline(group, rounds);
  double samples = 0;
  for (const DelayedRound& round : timeline) samples += static_cast<double>(round.samples);
  return {.samples_per_second = samples / timeline.back().transfer_end_seconds,
          .samples_per_round = samples / rounds};
}

}  // namespace tactus::policies
