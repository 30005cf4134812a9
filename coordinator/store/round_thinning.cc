#include "coordinator/store/round_thinning.h"

#include <algorithm>
#include <bit>

namespace tactus::store {
namespace {

constexpr const char* kFirst = "SELECT round FROM rounds WHERE job = ?1 ORDER BY round LIMIT 1";
constexpr const char* kLast = "SELECT round FROM rounds WHERE job = ?1 ORDER BY round DESC LIMIT 1";
constexpr const char* kFrom =
    "SELECT round FROM rounds WHERE job = ?1 AND round >= ?2 ORDER BY round LIMIT 1";
constexpr const char* kCountUpTo =
    "SELECT count(*) FROM (SELECT 1 FROM rounds WHERE job = ?1 LIMIT ?2) AS kept";
constexpr const char* kDeleteBetween =
    "DELETE FROM rounds WHERE job = ?1 AND round IN ("
    "  SELECT round FROM rounds WHERE job = ?1 AND round > ?2 AND round < ?3 LIMIT ?4)";
constexpr const char* kDeleteOffStride =
    "DELETE FROM rounds WHERE job = ?1 AND round >= ?2 AND round < ?3 AND (round - ?4) % ?5 <> 0";
constexpr const char* kStride = "SELECT stride FROM thinning WHERE job = ?1";
constexpr const char* kBelow = "SELECT thinned_below FROM thinning WHERE job = ?1";
constexpr const char* kNote =
    "INSERT INTO thinning (job, stride, thinned_below) VALUES (?1, ?2, ?3)"
    "  ON CONFLICT (job) DO UPDATE SET stride = ?2, thinned_below = ?3";

struct Range {
  std::int64_t first = -1;  // -1: no rounds
  std::int64_t last = -1;
};

absl::StatusOr<Range> RangeOf(Statements& statements, std::int64_t job) {
  const absl::StatusOr<std::int64_t> first = statements.Number(kFirst, -1, job);
  if (!first.ok()) return first.status();
  const absl::StatusOr<std::int64_t> last = statements.Number(kLast, -1, job);
  if (!last.ok()) return last.status();
  return Range{.first = *first, .last = *last};
}

// The round from which the `index`-th of `count` even parts begins; index == count: the last.
std::int64_t Target(const Range& range, std::int64_t index, std::int64_t count) {
  const auto span = static_cast<unsigned __int128>(range.last - range.first);
  const auto offset = span * static_cast<std::uint64_t>(index) / static_cast<std::uint64_t>(count);
  return range.first + static_cast<std::int64_t>(offset);
}

// What is thinned of a running job, and to what.
struct Stride {
  std::int64_t below = 0;   // rounds below this one
  std::int64_t stride = 1;  // a power of two
};

Stride StrideFor(const Range& range, std::int64_t rounds_max) {
  const std::int64_t whole = rounds_max / 2;
  const std::int64_t grain = std::max<std::int64_t>(1, rounds_max / 64);  // not at every round
  const std::int64_t older = range.last + 1 - whole - range.first;
  const std::int64_t thinned = older / grain * grain;
  const std::int64_t kept_max = rounds_max - whole - grain;
  const std::int64_t stride = (thinned + kept_max - 1) / kept_max;
  return {.below = range.first + thinned,
          .stride = static_cast<std::int64_t>(
              std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, stride))))};
}

}  // namespace

absl::Status FinishedThinning::Thin(std::int64_t job, std::int64_t rounds_max, std::int64_t& budget,
                                    bool& done) {
  done = false;
  const absl::StatusOr<std::int64_t> count = statements_.Number(kCountUpTo, 0, job, rounds_max + 1);
  if (!count.ok()) return count.status();
  budget -= 1 + *count / 16;
  const absl::StatusOr<Range> range = RangeOf(statements_, job);
  if (!range.ok()) return range.status();
  if (job_ != job || rounds_max_ != rounds_max) gap_ = 0;
  job_ = job;
  rounds_max_ = rounds_max;
  const std::int64_t gaps = rounds_max - 1;
  for (; *count > rounds_max && gap_ < gaps; ++gap_) {
    if (budget <= 0) return absl::OkStatus();
    const absl::StatusOr<std::int64_t> kept =
        statements_.Number(kFrom, range->last, job, Target(*range, gap_, gaps));
    if (!kept.ok()) return kept.status();
    const absl::StatusOr<std::int64_t> next =
        statements_.Number(kFrom, range->last, job, Target(*range, gap_ + 1, gaps));
    if (!next.ok()) return next.status();
    const absl::Status status = statements_.Run(kDeleteBetween, job, *kept, *next, budget);
    if (!status.ok()) return status;
    budget -= 1 + statements_.database().changes();
    if (budget <= 0) return absl::OkStatus();  // the gap may hold more
  }
  gap_ = 0;
  done = true;
  return absl::OkStatus();
}

absl::Status ThinRunning(Statements& statements, std::int64_t job, std::int64_t rounds_max,
                         std::int64_t& budget) {
  const absl::StatusOr<Range> range = RangeOf(statements, job);
  if (!range.ok()) return range.status();
  budget -= 2;
  if (range->first < 0 || range->last - range->first < rounds_max) return absl::OkStatus();
  const absl::StatusOr<std::int64_t> known = statements.Number(kStride, 1, job);
  if (!known.ok()) return known.status();
  absl::StatusOr<std::int64_t> below = statements.Number(kBelow, range->first, job);
  if (!below.ok()) return below.status();
  Stride goal = StrideFor(*range, rounds_max);
  goal.stride = std::max(goal.stride, *known);
  if (goal.stride != *known) below = range->first;
  if (*below >= goal.below || budget <= 0) return absl::OkStatus();
  const std::int64_t end = std::min(goal.below, *below + budget);
  absl::Status status =
      statements.Run(kDeleteOffStride, job, *below, end, range->first, goal.stride);
  if (!status.ok()) return status;
  budget -= end - *below;
  return statements.Run(kNote, job, goal.stride, end);
}

}  // namespace tactus::store
