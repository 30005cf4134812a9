// What the members of a group prove to one another that they know.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tactus::service {

// The file with the key, in a folder, and of coordinators that share a bucket the object there.
inline constexpr char kMeshKeyName[] = "mesh-key";

// A secret for each generation of each job's group, of which none tells anything of another. They
// are made of a key that is drawn once for a state folder and lies there (0600): so a member that
// is told of its group again, by a coordinator that was restarted meanwhile, is told the same, and
// neither the core, its tapes nor the database have any of them. A backup does not have the key
// either: what is restored from one has another. Any thread.
class MeshSecrets {
 public:
  static constexpr std::size_t kKeyBytes = 32;

  // The key of the folder, which is there; drawn where there is none. Errors: as the file system
  // has them; FailedPrecondition, it is not of the right length, or everybody may read it.
  static absl::StatusOr<MeshSecrets> Open(const std::string& state_folder);

  // 32 bytes. `job`: its resource id.
  std::string SecretOf(const std::string& job, std::uint64_t generation) const;

 private:
  explicit MeshSecrets(std::string key) : key_(std::move(key)) {}

  std::string key_;
};

}  // namespace tactus::service
