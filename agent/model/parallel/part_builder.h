// The module whose parameters are a member's parts of the dense model's. Private to agent/model.

#pragma once

#include <torch/script.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/places.h"
#include "agent/model/blueprint.h"
#include "agent/model/parallel/partition.h"
#include "base/rng.h"
#include "cuda/ops/segments.h"

namespace tactus::model {

// The dense model's layout and this member's place in it.
struct Layout {
  MeshKind kind = MeshKind::kNone;
  collective::MeshShape shape = {};
  collective::Place place = {};

  Part PartOf(const std::string& name, const std::vector<std::int64_t>& dense,
              const collective::Place& at) const {
    return model::PartOf(name, dense, kind, shape, at);
  }

  // Flat buffers: the part at this place of one by the segments `dense`, by the segments `parts`.
  std::vector<float> Cut(std::span<const float> flat, const cuda::SegmentTable& dense,
                         const cuda::SegmentTable& parts) const;
  // The opposite, of those of all places, row by row.
  std::vector<float> Join(std::span<const std::span<const float>> by_place,
                          const cuda::SegmentTable& dense, const cuda::SegmentTable& parts) const;
};

// Of a tensor of float32 on the host, without holes in memory.
inline std::span<float> Values(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// The member's parts of the dense model's initial weights, under the same names, on the host.
class PartBuilder {
 public:
  PartBuilder(const Layout& layout, std::uint64_t seed) : layout_(layout), seed_(seed) {}

  torch::jit::Module Build(const ModuleBlueprint& blueprint, const std::string& prefix);

  // Of all that was built, by name.
  std::map<std::string, Part> TakeParts() { return std::move(parts_); }

 private:
  at::Tensor Initial(const TensorBlueprint& tensor, const Part& part,
                     const std::string& name) const;

  const Layout layout_;
  const Rng seed_;
  // Shared with every module that is built.
  const std::shared_ptr<torch::jit::CompilationUnit> unit_ =
      std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, Part> parts_;
};

}  // namespace tactus::model
