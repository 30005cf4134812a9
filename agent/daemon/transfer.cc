#include "agent/daemon/transfer.h"

#include <algorithm>

#include "runtime/now.h"
#include "runtime/retry.h"
#include "runtime/status.h"

namespace tactus::agent {
namespace {

constexpr int kAttemptsMax = 5;

// Another attempt would end the same way.
bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

void SetLimit(grpc::ClientContext& context, std::chrono::seconds limit) {
  context.set_deadline(
      std::chrono::system_clock::time_point(std::chrono::nanoseconds(runtime::WallNow()) + limit));
}

bool WorthTrying(const absl::Status& status, int failures) {
  // A certificate that has run out is renewed in the end.
  if (runtime::IsRetryable(status) || runtime::RetryDelayOf(status)) return true;
  if (absl::IsUnauthenticated(status)) return true;
  return !status.ok() && !IsPermanent(status) && failures < kAttemptsMax;
}

Duration TryAgainAfter(const absl::Status& status, const runtime::BackoffOptions& backoff,
                       int failures, Rng& rng) {
  return std::max(runtime::BackoffDelay(backoff, failures, rng),
                  runtime::RetryDelayOf(status).value_or(Duration(0)));
}

}  // namespace tactus::agent
