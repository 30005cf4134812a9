// How long to wait before the next attempt. Only Unavailable is retried, and only what is
// idempotent.

#pragma once

#include "absl/status/status.h"
#include "base/rng.h"
#include "base/time.h"

namespace tactus::runtime {

struct BackoffOptions {
  Duration initial = Seconds(0.1);  // before the second attempt, > 0
  Duration max = Seconds(5);        // >= initial
  double multiplier = 2;            // >= 1
  double jitter = 0.25;             // share of the delay drawn at random around it, in [0, 1]
};

// The delay before attempt number `failures` + 1:
//
//   min(max, initial * multiplier^(failures - 1)) * (1 + jitter * u),  u uniform in [-1, 1)
//
// failures  [1]  attempts that failed so far, >= 1
Duration BackoffDelay(const BackoffOptions& options, int failures, Rng& rng);

// True for Unavailable alone: the call had no effect or may be repeated as it is.
bool IsRetryable(const absl::Status& status);

}  // namespace tactus::runtime
