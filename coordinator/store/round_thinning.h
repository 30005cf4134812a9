// Leaves out rounds of long jobs, so that a job's history stays bounded and still shows its course.

#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/store/statements.h"

namespace tactus::store {

// Of the rounds of a job that is over, leaves at most `rounds_max` (>= 2), spread evenly from the
// first to the last. Works in pieces; one job at a time; to be called within a transaction.
class FinishedThinning {
 public:
  explicit FinishedThinning(Statements& statements) : statements_(statements) {}

  // Takes what it did off `budget` (rows) and stops when that is used up; `done` says whether the
  // job has no more rounds than it may have.
  absl::Status Thin(std::int64_t job, std::int64_t rounds_max, std::int64_t& budget, bool& done);

 private:
  Statements& statements_;
  std::int64_t job_ = -1;
  std::int64_t rounds_max_ = 0;
  std::int64_t gap_ = 0;  // of this job the gaps between kept rounds below this one are empty
};

// Of the rounds of a job that goes on, keeps at most `rounds_max` (>= 16): the newer half of them
// whole, and of the older rounds each whose distance from the first is a multiple of a power of
// two. How far it has come is in the table `thinning`. To be called within a transaction.
absl::Status ThinRunning(Statements& statements, std::int64_t job, std::int64_t rounds_max,
                         std::int64_t& budget);

}  // namespace tactus::store
