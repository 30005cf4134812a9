// bytes-lm split over the members of a mesh: each has a Model whose parameters are its parts of the
// dense model's, and passes go through the mesh.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "agent/collective/transport.h"
#include "agent/model/model.h"
#include "agent/model/parallel/volume.h"

namespace tactus::model {

// One member's end. In what differs from a Model that has all of the model:
//
// - A replica's examples are what all its members bring, each its own, or none: in two dimensions a
//   row computes on those of its members, in one all of them do. The least work is done where all
//   bring equally many. So TryOut, ForwardBackward and Evaluate are called by all members, in the
//   same order, with samples of one length; losses and answers that they tell of are those of the
//   member's own examples, and gradients those of the replica's.
// - segments() are this member's parts, of the dense model's names; other replicas have such at the
//   same place. Some of them other members of the replica have as well: counts() is for norms
//   over all of a replica.
// - SaveTorchScript, SaveSafetensors and CopyTensors are called by all members, too.
// - What is saved is the dense model, by the member at row 0 and column 0; on the others nothing is
//   written and no tensor copied. LoadSafetensors takes a file of the dense model.
// - A gradient that belongs to a whole column is handed over at the pass's end.
//
// Additional errors: Unavailable, "model.options.mesh: ...", the mesh is over, and so is the pass.
// So it is for the others where a member has any other error in a pass, memory that ran out too.
// Join makes it whole again.
class PartitionedModel : public Model {
 public:
  // Whose parts of the model these are; row and column are the groups of that place and outlive the
  // model, or the next Join. Weights are those that the dense model has by the same seed.
  // With the mesh kNone, the whole model in one part.
  // Errors: Model::Open's and MeshShapeOf's (partition.h); InvalidArgument at "model.precision",
  // "model.loss" or "model.output" where a mesh has float32 and cross_entropy alone.
  static absl::StatusOr<std::unique_ptr<PartitionedModel>> Open(const ModelOptions& options,
                                                                collective::Transport& row,
                                                                collective::Transport& column);

  // The same before it is known where the member will be: the parts of row 0 and column 0, of which
  // segments() are what they are anywhere. Nothing but Bind, Join and what needs no other member
  // before it has joined; with one device it has.
  static absl::StatusOr<std::unique_ptr<PartitionedModel>> OpenApart(const ModelOptions& options);

  virtual const collective::MeshShape& shape() const = 0;

  // [segments().size()] Whether this member is the one that counts a segment, of those who have it.
  virtual const std::vector<bool>& counts() const = 0;
  // [segments().size()] Whether other members of the replica have it, too; the same on all.
  virtual const std::vector<bool>& copies() const = 0;

  // Why no pass can be made of such examples; nothing travels for it. Errors: InvalidArgument at
  // "data".
  virtual absl::Status Check(const Examples& examples) const = 0;

  // Goes on in other groups, which outlive it or the next Join. True: they are of another place,
  // and the parameters that it is bound to are the initial ones of that. Requires: no pass is under
  // way. Errors: ResourceExhausted.
  //
  // What all members of a row have whole, as a line's norms, each of them computes the gradient of.
  // Where they are unlike, all take that of the first, so that their copies move alike but for the
  // rounding of sums over replicas and of optimizers.
  virtual absl::StatusOr<bool> Join(const collective::MeshGroups& groups) = 0;

  // The most that any member of the replica has; by all of them.
  virtual absl::StatusOr<std::uint64_t> MostOf(std::uint64_t own) = 0;

  // ---- Buffers of the parameters' length, such as an optimizer's, in the dense model's layout.

  // The dense model's segments(), which have the same names in the same order.
  virtual const cuda::SegmentTable& dense_segments() const = 0;
  // By all members of the replica: those at row 0 and column 0 have [FlatLength(dense_segments())]
  // then, all others nothing.
  virtual absl::StatusOr<std::vector<float>> GatherFlat(std::span<const float> own) = 0;
  // The opposite, of one member alone: its part, [FlatLength(segments())].
  virtual std::vector<float> CutFlat(std::span<const float> dense) const = 0;
  // What GatherFlat gives, of one member alone that has the parts of all places, row by row. What
  // places have copies of is the last one's.
  virtual std::vector<float> JoinFlat(std::span<const std::span<const float>> by_place) const = 0;
  // Writes dense parameters as SaveTorchScript and SaveSafetensors do. One member alone.
  virtual absl::Status SaveDense(std::span<const float> dense, const std::string& torchscript,
                                 const std::string& safetensors) const = 0;

  // By this member since the last call, in its row and its column.
  virtual Volume TakeMoved() = 0;
};

}  // namespace tactus::model
