// What a trainee is of which each device has a part only: a replica is a mesh of members.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "cuda/ops/segments.h"

namespace tactus::worker {

// One member's end. Passes and evaluations are made by all members of a replica together, as often
// and in the same order, also by who has no samples for them. What is kept in files is of the dense
// model, whatever the mesh. One thread.
class ModelParts {
 public:
  virtual ~ModelParts() = default;

  // Of a replica; of two devices and more.
  virtual const collective::MeshShape& shape() const = 0;

  // Goes on in these groups, of its place's row and column, which outlive it or the next Join.
  // True: the parameters are the initial ones of another place than before.
  // Errors: ResourceExhausted.
  virtual absl::StatusOr<bool> Join(const collective::MeshGroups& groups) = 0;

  // Of the dense model: the trainee's segments by name and order, in their whole shapes.
  virtual const cuda::SegmentTable& dense_segments() const = 0;

  // [segments of the trainee] Whether this member is the one that counts a segment, of those of its
  // replica who have it.
  virtual const std::vector<bool>& counts() const = 0;
  // [segments of the trainee] Whether other members of its replica have it, too; the same on all.
  virtual const std::vector<bool>& copies() const = 0;

  // A buffer of the parameters' length, in the dense model's layout: by all members of the replica,
  // of which that at row 0 and column 0 gets it and the others nothing. Errors: Unavailable, the
  // mesh is over.
  virtual absl::StatusOr<std::vector<float>> Gather(std::span<const float> own) = 0;
  // The opposite, of this member alone.
  virtual std::vector<float> Cut(std::span<const float> dense) const = 0;
  // What Gather gives, of one member alone that has the buffers of a replica's members, by rank.
  virtual std::vector<float> PutTogether(std::span<const std::span<const float>> by_rank) const = 0;

  // As Trainee::WriteModel, of parameters in the dense model's layout. One member alone.
  virtual absl::StatusOr<std::vector<std::string>> WriteDense(std::span<const float> dense,
                                                              const std::string& directory) = 0;
};

}  // namespace tactus::worker
