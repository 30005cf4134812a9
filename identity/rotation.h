// An authority's folder as it is while one key takes the place of another: ca.pem and ca-key.pem may
// hold several of them, and the certificates' own times say which signs and which is still trusted.

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/authority.h"

namespace tactus::identity {

// The authority that signs at `now` [s since 1970]: of those of ca.pem that have begun, the one that
// began last and has its key in ca-key.pem. Errors: NotFound; InvalidArgument, there is none; of the
// file system.
absl::StatusOr<AuthorityTexts> ReadAuthority(const std::string& folder, std::int64_t now);

struct Rotation {
  std::int64_t now = 0;  // [s since 1970]
  // From now until the new key signs, and as long again until the old one is not trusted any more.
  // Not less than the life of a certificate: who has a valid one then knows the new authority.
  std::int64_t over = 7 * kDaySeconds;  // [s], > 0
  int days = 3650;                      // how long the new authority is valid
};
struct Rotated {
  std::int64_t signs = 0;   // when the new one begins to sign
  std::int64_t closed = 0;  // when the old one ends
};

// Makes another authority of the same trust domain beside the one in `folder`, whose certificate is
// made to end at now + 2 over; what has ended is taken out. Each file is replaced whole, the keys
// first. Errors: FailedPrecondition, the authority there has not begun yet, as a rotation is under
// way; InvalidArgument; as ReadAuthority.
absl::StatusOr<Rotated> RotateAuthority(const std::string& folder, const Rotation& rotation);

}  // namespace tactus::identity
