#include "coordinator/shell/mesh_secrets.h"

#include <span>
#include <utility>

#include "crypto/mac.h"
#include "crypto/random.h"
#include "identity/secret_file.h"

namespace tactus::service {

absl::StatusOr<MeshSecrets> MeshSecrets::Open(const std::string& state_folder) {
  const std::string path = state_folder + "/" + kMeshKeyName;
  absl::StatusOr<std::string> key = identity::ReadKeyFile(path);
  if (absl::IsNotFound(key.status())) {
    std::string drawn(kKeyBytes, '\0');
    if (!crypto::FillRandom(std::as_writable_bytes(std::span(drawn)))) {
      return absl::UnavailableError(path + ": the system has no random bytes");
    }
    const absl::Status written = identity::ReplaceFile(path, drawn, 0600);
    if (!written.ok()) return written;
    return MeshSecrets(std::move(drawn));
  }
  if (!key.ok()) return key.status();
  if (key->size() != kKeyBytes) {
    return absl::FailedPreconditionError(path + ": found " + std::to_string(key->size()) +
                                         " bytes, allowed are 32; remove it, and another is made");
  }
  return MeshSecrets(*std::move(key));
}

std::string MeshSecrets::SecretOf(const std::string& job, std::uint64_t generation) const {
  // No name has this byte.
  const std::string text = job + '\0' + std::to_string(generation);
  const crypto::Mac secret = crypto::MacOf(key_, std::as_bytes(std::span(text)));
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

}  // namespace tactus::service
