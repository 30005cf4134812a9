// What transfers of files to and from the coordinator have in common.

#pragma once

#include <grpcpp/client_context.h>

#include <chrono>

#include "absl/status/status.h"
#include "base/rng.h"
#include "base/time.h"
#include "runtime/retry.h"

namespace tactus::agent {

// Ends the call when it takes longer than `limit`.
void SetLimit(grpc::ClientContext& context, std::chrono::seconds limit);

// True when a transfer that ended with `status`, after so many attempts without success, is to be
// tried again: for ever while the coordinator is away, says when to try again or does not know who
// this is, five times where another attempt may end otherwise.
bool WorthTrying(const absl::Status& status, int failures);

// How long to wait before that: as the backoff has it, and not less than the coordinator asks for.
Duration TryAgainAfter(const absl::Status& status, const runtime::BackoffOptions& backoff,
                       int failures, Rng& rng);

}  // namespace tactus::agent
