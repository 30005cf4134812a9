#include "runtime/retry.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus::runtime {

Duration BackoffDelay(const BackoffOptions& options, int failures, Rng& rng) {
  TACTUS_CHECK(failures >= 1);
  const double grown =
      ToSeconds(options.initial) * std::pow(options.multiplier, static_cast<double>(failures - 1));
  const double base = std::min(ToSeconds(options.max), grown);
  return Seconds(base * (1 + options.jitter * (2 * rng.Uniform() - 1)));
}

bool IsRetryable(const absl::Status& status) { return absl::IsUnavailable(status); }

}  // namespace tactus::runtime
