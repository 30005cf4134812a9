// Coming by a certificate and renewing it, at a coordinator that has an authority. Each call blocks.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "identity/certificate.h"

namespace tactus::identity {

struct EnrolOrder {
  std::string folder{};  // as RequestFor has it
  std::string server{};  // host:port, or several with commas between them, of which one leads
  std::string token{};   // as a person gives it
  Duration within{};     // how long a coordinator that does not answer is awaited; > 0
};

// Makes a key in the folder, where it has none, shows the token to the coordinator that it pins, and
// writes the certificate that comes back beside the key. After a failure another call goes on with
// that key, for which the token is good still. Errors: InvalidArgument, it is no token;
// FailedPrecondition, who answers is not the coordinator that the token is of; what the coordinator
// says; Unavailable, nobody answers; of the file system.
absl::StatusOr<Certificate> EnrolInto(const EnrolOrder& order);

// Has the folder's certificate renewed by the coordinator at `server`, as EnrolOrder has it, which
// is asked with the present one. Errors: as CheckTlsFolder; what the coordinator says; Unavailable; of the file
// system.
absl::StatusOr<Certificate> RenewOver(const std::string& folder, const std::string& server,
                                      Duration within);

}  // namespace tactus::identity
