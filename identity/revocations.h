// Who is not let in any more, though the certificate is good: a file with a name or a serial number
// a line.
//
//   # left on 2 December
//   user/alice
//   node/gpu-7
//   serial 4f6a...            as tactus admin issue prints it

#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"

namespace tactus::identity {

inline constexpr const char* kRevokedFile = "revoked";  // of a TLS folder

class Revocations {
 public:
  Revocations() = default;

  // Errors: InvalidArgument, the first line that is none of the above.
  static absl::StatusOr<Revocations> Parse(const std::string& text);

  bool Has(const Certificate& certificate) const;
  std::size_t size() const { return entries_.size(); }

 private:
  std::set<std::string> entries_;  // as they are written
};

// Adds a line to the file at `path`, which is made if it is not there. Without effect where it has
// it. Errors: InvalidArgument, no such entry; of the file system.
absl::Status Revoke(const std::string& path, const std::string& entry);

}  // namespace tactus::identity
