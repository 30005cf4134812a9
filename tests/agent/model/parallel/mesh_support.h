// Meshes of threads, and what tests of layers take apart and put together.

#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/model/model.h"
#include "agent/model/parallel/group.h"
#include "agent/model/parallel/partitioned_model.h"
#include "tests/agent/model/model_support.h"

namespace tactus::model {

// Runs `body` for every member of one mesh, each on its own thread, and waits for all. An exception
// in one fails the test and ends the mesh.
void OnMesh(const collective::MeshShape& shape, const std::function<void(const Mesh&)>& body);

// Block (i, j) of rows x columns equal blocks of a matrix, a copy of its own.
at::Tensor BlockOf(const at::Tensor& matrix, int i, int j, const collective::MeshShape& shape);

// The blocks of all members, put together again. Every member leaves its own once.
class Assembly {
 public:
  explicit Assembly(const collective::MeshShape& shape)
      : shape_(shape), blocks_(static_cast<std::size_t>(shape.devices())) {}

  void Leave(const Mesh& mesh, const at::Tensor& block) {
    blocks_[static_cast<std::size_t>(mesh.i() * shape_.columns + mesh.j())] =
        block.detach().clone();
  }
  // When all have left theirs.
  at::Tensor Whole() const;
  const at::Tensor& At(int i, int j) const {
    return blocks_[static_cast<std::size_t>(i * shape_.columns + j)];
  }

 private:
  const collective::MeshShape shape_;
  std::vector<at::Tensor> blocks_;
};

// Whole numbers in [-limit, limit]: their products and sums are exact.
at::Tensor WholeNumbers(std::vector<std::int64_t> shape, std::int64_t limit, std::uint64_t seed);

// A model of one member, bound to buffers of its own.
struct BoundPart {
  BoundPart(const ModelOptions& options, collective::MeshGroups& groups);

  // The loss of the member's examples; adds gradients up.
  double Step(const Examples& examples);
  // parameters -= rate * gradients; then they are zero.
  void Descend(float rate);

  std::unique_ptr<PartitionedModel> model;
  AlignedFloats parameters;
  AlignedFloats gradients;
  double loss_sum = 0;
};

// What a member of so many brings of samples from `first` on.
Examples ShareOf(const ExampleSet& set, std::uint64_t first, std::uint64_t count, int rank,
                 std::uint64_t members);

// "bytes-lm" in small, split so.
ModelOptions SmallLm(MeshKind kind, std::uint32_t devices);

// Every member of one mesh with a model by these options, each on its own thread.
void OnParts(const ModelOptions& options, const std::function<void(int rank, BoundPart&)>& body);

}  // namespace tactus::model
