// Whether the files of a downloaded result are those that the coordinator vouched for.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "identity/revocations.h"

namespace tactus::client {

struct VerifyOrder {
  std::string folder{};     // as `tactus download` wrote it
  std::string authority{};  // PEM; empty: whose the signature is, is not asked
  std::string domain{};     // of the coordinator; empty: whichever the authority is of
  // Whose signatures are worth nothing; unset: it is not asked. With an authority alone.
  std::optional<identity::Revocations> revoked{};
  std::int64_t now = 0;  // [s since 1970]
};

struct VerifyFinding {
  bool right = true;
  std::string text{};  // one line: "model.pt: as recorded"
};

// Each file of the record, each of the folder that is not in it, the plans, and the signature.
// Errors: NotFound, there is no record; InvalidArgument, it is none; of the file system.
absl::StatusOr<std::vector<VerifyFinding>> VerifyResult(const VerifyOrder& order);

}  // namespace tactus::client
