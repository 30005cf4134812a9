// TorchScript modules: made from a blueprint, loaded, saved. Private to this folder.

#pragma once

#include <torch/script.h>

#include <cstdint>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/data/dataset.h"
#include "agent/model/blueprint.h"
#include "agent/tensors/safetensors.h"

namespace tactus::model {

// What went wrong, in one line, without libtorch's traces.
std::string OneLine(const std::exception& error);

// An error of libtorch, at a field of the job file: ResourceExhausted when memory ran out, else
// Internal.
absl::Status TorchError(const std::string& field, const std::exception& error);

// An error for which a user's file is to blame, "FIELD: WHAT: ...": InvalidArgument, but
// ResourceExhausted when memory ran out.
absl::Status Blame(const std::string& field, const std::string& what, const std::exception& error);

// "float32 [2, 3, 32, 32]".
std::string Describe(const at::Tensor& tensor);

// "[2, 3, 32, 32]".
std::string ShapeText(at::IntArrayRef shape);

at::ScalarType ToTorch(data::ElementType type);

// Makes the module with initial weights drawn from `seed`, one stream of numbers for each tensor's
// name. Errors: ResourceExhausted, not enough memory for its tensors; Internal, the source does not
// compile.
absl::StatusOr<torch::jit::Module> BuildModule(const ModuleBlueprint& root, std::uint64_t seed);

// Loads a file onto the host. Errors are those of `field`.
// Errors: NotFound, no such file; InvalidArgument, not TorchScript.
absl::StatusOr<torch::jit::Module> LoadModule(const std::string& path, const std::string& field);

// A copy of the module in the host's memory; what its tensors share among each other, the copies
// share too. Throws what libtorch throws.
torch::jit::Module HostCopy(const torch::jit::Module& module);

// Writes the module as TorchScript in evaluation mode, its tensors as the host's; afterwards it is
// in training mode. Errors: see AtomicFile; Internal, libtorch cannot write it.
absl::Status SaveModule(torch::jit::Module module, const std::string& path);

// Writes every parameter and buffer as safetensors, names as in the module.
// Errors: see AtomicFile; Unimplemented, a tensor's type is not one of the format's.
absl::Status SaveTensors(const torch::jit::Module& module, const std::string& path);

// See Model::CopyTensors.
absl::Status CopyTensors(const torch::jit::Module& module, tensors::TensorsCopy& copy);

// See Model::LoadSafetensors.
absl::Status LoadTensors(const torch::jit::Module& module, const std::string& path);

}  // namespace tactus::model
