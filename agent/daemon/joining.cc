#include "agent/daemon/joining.h"

#include "identity/enrolment.h"
#include "identity/secret_file.h"
#include "identity/tls_folder.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::agent {
namespace {

constexpr Duration kCoordinatorAwaited = Seconds(60);

}  // namespace

absl::Status Join(const JoinFlags& flags, const std::string& tls_dir,
                  const std::string& coordinator) {
  if (flags.token.empty() && flags.token_file.empty()) return absl::OkStatus();
  if (!flags.token.empty() && !flags.token_file.empty()) {
    return absl::InvalidArgumentError("join: found beside --join-file; allowed is one of them");
  }
  if (tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "join: found without --tls-dir, the folder where key and certificate are to be");
  }
  // A token that was used stays in a unit's options.
  if (!identity::NeedsCertificate(tls_dir, runtime::WallSeconds())) return absl::OkStatus();
  std::string token = flags.token;
  if (token.empty()) {
    absl::StatusOr<std::string> read = identity::ReadKeyFile(flags.token_file);
    if (!read.ok()) {
      return {read.status().code(), "join-file: " + std::string(read.status().message())};
    }
    token = *std::move(read);
  }
  const absl::StatusOr<identity::Certificate> enrolled = identity::EnrolInto(
      {.folder = tls_dir, .server = coordinator, .token = token, .within = kCoordinatorAwaited});
  if (!enrolled.ok()) return enrolled.status();
  runtime::Logger("agent")->info("enrolled holder={} end={}", ShortNameOf(enrolled->holder),
                                 runtime::UtcText(enrolled->end));
  return absl::OkStatus();
}

}  // namespace tactus::agent
