// Who is not let in any more, though the certificate is good: a file with a name or a serial number
// a line, and from when on what was signed by it is worth nothing.
//
//   # left on 2 December
//   user/alice
//   node/gpu-7 since 2026-12-02T10:00:00Z
//   serial 4f6a...            as tactus admin issue prints it; nothing that it signed, ever

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"

namespace tactus::identity {

inline constexpr const char* kRevokedFile = "revoked";  // of a TLS folder

// Seconds since 1970 of "2026-12-02T10:00:00Z", or with another offset. Nothing: it is no such time,
// or before 1970.
std::optional<std::int64_t> ParseMoment(const std::string& text);

class Revocations {
 public:
  Revocations() = default;

  // Errors: InvalidArgument, the first line that is none of the above.
  static absl::StatusOr<Revocations> Parse(const std::string& text);

  // Those of another list as well: of one that both have, since the earlier time.
  void Include(const Revocations& other);

  // Whether its holder is let in no more, which a time on the line changes nothing of.
  bool Has(const Certificate& certificate) const { return Since(certificate).has_value(); }
  // The moment [s since 1970] from which on what its key signed is worth nothing, the earliest of
  // the lines that it is on; 0: all of it. Nothing: it is on none.
  std::optional<std::int64_t> Since(const Certificate& certificate) const;
  std::size_t size() const { return entries_.size(); }

 private:
  friend absl::Status Revoke(const std::string& path, const std::string& entry, std::int64_t since);
  void Include(const std::string& entry, std::int64_t since);
  std::optional<std::int64_t> SinceOf(const std::string& entry) const;

  std::map<std::string, std::int64_t> entries_;  // as they are written, and since when; 0: ever
};

// Errors: InvalidArgument, with what is allowed.
absl::Status CheckEntry(const std::string& entry);

// Adds a line to the file at `path`, which is made if it is not there. `since`: as Since has it.
// Without effect where it has such a line of that time or of one before. Of several at once, none
// is lost: they wait for one another.
// Errors: InvalidArgument, no such entry; of the file system.
absl::Status Revoke(const std::string& path, const std::string& entry, std::int64_t since = 0);

}  // namespace tactus::identity
