#include "client/render/exit_code.h"

#include "absl/strings/cord.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

constexpr char kLocalFile[] = "tactus.client/local-file";

// A coordinator was there and said why it cannot: a full disk, a backup under way.
bool Refused(const absl::Status& status) {
  const std::string reason = runtime::ReasonOf(status).reason;
  return !reason.empty() && reason != "COORDINATOR_STOPPING" && reason != "NOT_LEADING";
}

}  // namespace

absl::Status OfLocalFile(absl::Status status) {
  if (!status.ok()) status.SetPayload(kLocalFile, absl::Cord());
  return status;
}

bool IsOfLocalFile(const absl::Status& status) { return status.GetPayload(kLocalFile).has_value(); }

ExitCode ExitCodeOf(const absl::Status& status) {
  if (IsOfLocalFile(status)) return ExitCode::kFile;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return ExitCode::kConflict;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kDenied;
    case absl::StatusCode::kUnavailable:
      return Refused(status) ? ExitCode::kGeneric : ExitCode::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kTimedOut;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kGeneric;
  }
}

std::string ExitCodesHelp() {
  return "Exit codes:\n"
         "  0 ok   1 error, or a replay differs   2 wrong command line, settings or input file\n"
         "  3 not found   4 conflict   5 denied   6 no coordinator answers   7 timed out\n"
         "  8 the job failed or was cancelled   9 a simulation broke a promise\n"
         "  10 a file could not be written here   130 interrupted\n";
}

}  // namespace tactus::client
