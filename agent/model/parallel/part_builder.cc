#include "agent/model/parallel/part_builder.h"

#include "agent/model/initial_weights.h"
#include "base/check.h"

namespace tactus::model {

std::vector<float> Layout::Cut(std::span<const float> flat, const cuda::SegmentTable& dense,
                               const cuda::SegmentTable& parts) const {
  std::vector<float> own(cuda::FlatLength(parts));
  for (std::size_t i = 0; i < dense.size(); ++i) {
    CopyPart(PartOf(dense[i].name, dense[i].shape, place),
             flat.subspan(dense[i].offset, dense[i].length),
             std::span(own).subspan(parts[i].offset, parts[i].length));
  }
  return own;
}

std::vector<float> Layout::Join(std::span<const std::span<const float>> by_place,
                                const cuda::SegmentTable& dense,
                                const cuda::SegmentTable& parts) const {
  TACTUS_CHECK(by_place.size() == static_cast<std::size_t>(shape.devices()));
  std::vector<float> flat(cuda::FlatLength(dense));
  for (std::size_t rank = 0; rank < by_place.size(); ++rank) {
    const collective::Place at = collective::PlaceOf(static_cast<int>(rank), shape);
    for (std::size_t i = 0; i < dense.size(); ++i) {
      PlacePart(PartOf(dense[i].name, dense[i].shape, at),
                by_place[rank].subspan(parts[i].offset, parts[i].length),
                std::span(flat).subspan(dense[i].offset, dense[i].length));
    }
  }
  return flat;
}

torch::jit::Module PartBuilder::Build(const ModuleBlueprint& blueprint, const std::string& prefix) {
  torch::jit::Module module(c10::QualifiedName("__torch__." + blueprint.type), unit_,
                            /*shouldMangle=*/true);
  for (const TensorBlueprint& tensor : blueprint.tensors) {
    const std::string name = prefix + tensor.name;
    const Part part = layout_.PartOf(name, tensor.shape, layout_.place);
    module.register_parameter(tensor.name, Initial(tensor, part, name).requires_grad_(true),
                              /*is_buffer=*/false);
    parts_[name] = part;
  }
  for (const ModuleBlueprint& child : blueprint.children) {
    module.register_module(child.name, Build(child, prefix + child.name + "."));
  }
  return module;
}

// The dense tensor is drawn whole, and let go: its values are those of one row of numbers.
at::Tensor PartBuilder::Initial(const TensorBlueprint& tensor, const Part& part,
                                const std::string& name) const {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
  const at::Tensor dense = at::empty(tensor.shape, options);
  FillInitial(tensor, seed_.Fork(name), Values(dense));
  at::Tensor block = at::empty(part.Shape(), options);
  CopyPart(part, Values(dense), Values(block));
  return block;
}

}  // namespace tactus::model
