// The gate that every call passes: who it is, by the certificate, and whether the method is for
// such.

#pragma once

#include <grpcpp/security/auth_metadata_processor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/access/policy.h"
#include "coordinator/access/principal.h"
#include "identity/revocations.h"
#include "runtime/control_thread.h"
#include "threads/mutex.h"

namespace tactus::access {

struct GateOptions {
  std::string tls_dir{};      // whose cert.pem names the trust domain, and whose `revoked` counts
  std::string policy_file{};  // empty: Policy()
  // Of files that coordinators of one store share: its `revoked` counts as well; empty: none.
  std::string shared_folder{};
  Duration look = Seconds(5);  // how often the files are looked at; > 0
};

// Of a coordinator with TLS. From any thread.
class Gate {
 public:
  // Errors: InvalidArgument or FailedPrecondition, one of the files is wrong; of the file system.
  static absl::StatusOr<std::unique_ptr<Gate>> Open(const GateOptions& options);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Whose certificate it is, PEM, which TLS has verified; empty: a stranger, who has none. Errors:
  // Unauthenticated, it names nobody of this trust domain, is not valid any more or is revoked;
  // PermissionDenied, the policy gives no role.
  absl::StatusOr<Principal> Identify(const std::string& pem) const;

  // Whether they may call the method, by its path. Errors: PermissionDenied; Unauthenticated, they
  // are strangers, and it is not for such.
  absl::Status AdmitMethod(const Principal& who, const std::string& path) const;

  // Whether somebody who was let in would be still. Cheap while no rule has changed. Errors: of the
  // above.
  absl::Status Still(const Principal& who, const std::string& path) const;

  // For the server's credentials: refuses what the above refuse, before anything of ours sees the
  // call; `refused` is told of each. The gate outlives it.
  using Refused = std::function<void(const std::string& who, const std::string& certificate,
                                     const std::string& path, const absl::Status& status)>;
  std::shared_ptr<grpc::AuthMetadataProcessor> MakeProcessor(Refused refused) const;

 private:
  struct Rules {
    Policy policy{};
    identity::Revocations revocations{};
    std::uint64_t version = 0;
  };
  // What is known of the files, so that they are read anew only where they changed.
  struct Texts {
    std::string policy{};
    std::string revoked{};
    std::string shared_revoked{};
    bool operator==(const Texts&) const = default;
  };

  Gate(const GateOptions& options, std::string domain);
  absl::StatusOr<Texts> ReadTexts() const;
  absl::StatusOr<Rules> ReadRules(const Texts& texts) const;
  void Look();
  void LookAgain();
  std::shared_ptr<const Rules> rules() const;
  absl::StatusOr<identity::Certificate> Read(const std::string& pem) const;
  absl::StatusOr<Principal> Judge(const identity::Certificate& certificate) const;

  const GateOptions options_;
  const std::string domain_;
  mutable threads::Mutex mutex_;
  std::shared_ptr<const Rules> rules_ ABSL_GUARDED_BY(mutex_);
  // By their PEM; bounded.
  mutable std::map<std::string, identity::Certificate> certificates_ ABSL_GUARDED_BY(mutex_);
  // Of the thread:
  Texts texts_;
  std::string complaint_;  // the last one, said once; empty: the files are good
  runtime::ControlThread thread_;
  std::unique_ptr<runtime::Timer> timer_;
};

// What a certificate's PEM is called among a connection's properties; empty: it has none.
std::string CertificateOf(const grpc::AuthContext& context);

}  // namespace tactus::access
