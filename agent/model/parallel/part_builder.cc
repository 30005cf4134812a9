#include "agent/model/parallel/part_builder.h"

#include "agent/model/initial_weights.h"

namespace tactus::model {
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
