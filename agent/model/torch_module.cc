#include "agent/model/torch_module.h"

#include <torch/csrc/jit/serialization/export.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/data/field_error.h"
#include "agent/model/initial_weights.h"
#include "agent/tensors/atomic_file.h"
#include "agent/tensors/safetensors.h"
#include "base/rng.h"

namespace tactus::model {
namespace {

// The interpreter wraps an error into a traceback, whose last line is the error itself.
std::string LastErrorLine(const std::string& text) {
  const std::size_t at = text.rfind("Error: ");
  if (at == std::string::npos) return text;
  return text.substr(at + std::string("Error: ").size());
}

at::Tensor MakeTensor(const TensorBlueprint& blueprint, const Rng& rng) {
  const at::Tensor tensor = torch::empty(blueprint.shape, at::TensorOptions().dtype(at::kFloat));
  FillInitial(blueprint, rng,
              std::span(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())));
  return tensor;
}

// The names that safetensors has for element types; null, it has none.
const char* SafetensorsType(at::ScalarType type) {
  constexpr std::array<std::pair<at::ScalarType, const char*>, 10> kTypes = {{
      {at::kFloat, "F32"},
      {at::kDouble, "F64"},
      {at::kHalf, "F16"},
      {at::kBFloat16, "BF16"},
      {at::kLong, "I64"},
      {at::kInt, "I32"},
      {at::kShort, "I16"},
      {at::kChar, "I8"},
      {at::kByte, "U8"},
      {at::kBool, "BOOL"},
  }};
  for (const auto& [torch_type, name] : kTypes) {
    if (torch_type == type) return name;
  }
  return nullptr;
}

// Builds modules of one compilation unit, so that their classes can refer to each other when saved.
class Builder {
 public:
  explicit Builder(std::uint64_t seed) : seed_(seed) {}

  torch::jit::Module Build(const ModuleBlueprint& blueprint, const std::string& prefix) {
    torch::jit::Module module(c10::QualifiedName("__torch__." + blueprint.type), unit_,
                              /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), true);
    for (const TensorBlueprint& tensor : blueprint.tensors) {
      at::Tensor value = MakeTensor(tensor, seed_.Fork(prefix + tensor.name));
      if (tensor.trained) value.requires_grad_(true);
      module.register_parameter(tensor.name, value, /*is_buffer=*/!tensor.trained);
    }
    for (const ModuleBlueprint& child : blueprint.children) {
      module.register_module(child.name, Build(child, prefix + child.name + "."));
    }
    if (!blueprint.source.empty()) module.define(blueprint.source);
    return module;
  }

 private:
  const Rng seed_;
  // Shared with every module that is built.
  const std::shared_ptr<torch::jit::CompilationUnit> unit_ =
      std::make_shared<torch::jit::CompilationUnit>();
};

bool OutOfMemory(const std::exception& error) {
  // The interpreter of TorchScript leaves the text alone of what was thrown below it.
  const std::string text = error.what();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         text.find("allocate memory") != std::string::npos ||
         text.find("out of memory") != std::string::npos ||
         text.find("ALLOC_FAILED") != std::string::npos;  // cuBLAS, cuDNN
}

// The device failed and not what it was asked to do: an index out of bounds in a model's kernel is
// an error of CUDA's as well.
bool DeviceFailed(const std::exception& error) {
  const std::string text = error.what();
  return text.find("CUDA error") != std::string::npos &&
         text.find("device-side assert") == std::string::npos;
}

absl::StatusCode CodeOf(const std::exception& error, absl::StatusCode otherwise) {
  if (OutOfMemory(error)) return absl::StatusCode::kResourceExhausted;
  return DeviceFailed(error) ? absl::StatusCode::kUnavailable : otherwise;
}

bool IsOnHost(const torch::jit::Module& module) {
  for (const at::Tensor& parameter : module.parameters()) {
    if (!parameter.is_cpu()) return false;
  }
  for (const at::Tensor& buffer : module.buffers()) {
    if (!buffer.is_cpu()) return false;
  }
  return true;
}

// Copies a module's objects and, into the host's memory, its tensors.
class HostCopies {
 public:
  c10::intrusive_ptr<c10::ivalue::Object> Of(
      const c10::intrusive_ptr<c10::ivalue::Object>& object) {
    const auto known = objects_.find(object.get());
    if (known != objects_.end()) return known->second;
    const auto copy = objects_[object.get()] = object->copy();
    for (std::size_t i = 0; i < copy->slots().size(); ++i) {
      const c10::IValue value = copy->getSlot(i);
      if (value.isModule()) copy->setSlot(i, Of(value.toObject()));
      if (value.isTensor() && value.toTensor().defined()) copy->setSlot(i, Of(value.toTensor()));
    }
    return copy;
  }

 private:
  at::Tensor Of(const at::Tensor& tensor) {
    at::Tensor& copy = tensors_[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) copy = Copy(tensor).set_requires_grad(tensor.requires_grad());
    return copy;
  }

  // Tensors over one memory are so again.
  at::Tensor Copy(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    const at::TensorOptions host = tensor.options().device(at::kCPU);
    if (!tensor.has_storage()) return tensor.to(host, /*non_blocking=*/false, /*copy=*/true);
    at::Tensor& whole = storages_[tensor.storage().unsafeGetStorageImpl()];
    if (!whole.defined()) {
      whole = at::empty({0}, tensor.options()).set_(tensor.storage());
      whole = whole.to(host, /*non_blocking=*/false, /*copy=*/true);
    }
    return at::empty({0}, host).set_(whole.storage(), tensor.storage_offset(), tensor.sizes(),
                                     tensor.strides());
  }

  std::map<const c10::ivalue::Object*, c10::intrusive_ptr<c10::ivalue::Object>> objects_;
  std::map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::map<const c10::StorageImpl*, at::Tensor> storages_;
};

// Calls `take` with each parameter and buffer, and what its bytes are in, in the host's memory.
template <typename Take>
absl::Status ForEachTensor(const torch::jit::Module& module, const Take& take) {
  const auto give = [&take](const std::string& name, const at::Tensor& tensor) {
    const char* type = SafetensorsType(tensor.scalar_type());
    if (type == nullptr) {
      return absl::UnimplementedError("tensor " + name + " is " + Describe(tensor) +
                                      ", which safetensors does not hold");
    }
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    take({.name = name,
          .type = type,
          .element_bytes = static_cast<std::size_t>(flat.element_size()),
          .shape = flat.sizes().vec(),
          .bytes = std::span(static_cast<const std::byte*>(flat.data_ptr()), flat.nbytes())},
         flat);
    return absl::OkStatus();
  };
  for (const auto& [name, tensor] : module.named_parameters()) {
    if (absl::Status s = give(name, tensor); !s.ok()) return s;
  }
  for (const auto& [name, tensor] : module.named_buffers()) {
    if (absl::Status s = give(name, tensor); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

std::string OneLine(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text =
      LastErrorLine(torch_error != nullptr ? torch_error->what_without_backtrace() : error.what());
  text.erase(0, text.find_first_not_of(" \n"));
  return text.substr(0, text.find('\n'));
}

absl::Status TorchError(const std::string& field, const std::exception& error) {
  const absl::StatusCode code = CodeOf(error, absl::StatusCode::kInternal);
  return data::AtField(field, absl::Status(code, OneLine(error)));
}

absl::Status Blame(const std::string& field, const std::string& what, const std::exception& error) {
  const absl::StatusCode code = CodeOf(error, absl::StatusCode::kInvalidArgument);
  return data::AtField(field, absl::Status(code, what + ": " + OneLine(error)));
}

std::string ShapeText(at::IntArrayRef shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string Describe(const at::Tensor& tensor) {
  std::string type = c10::toString(tensor.scalar_type());
  switch (tensor.scalar_type()) {
    case at::kFloat:
      type = "float32";
      break;
    case at::kLong:
      type = "int64";
      break;
    case at::kByte:
      type = "uint8";
      break;
    case at::kBool:
      type = "bool";
      break;
    default:
      break;
  }
  return type + " " + ShapeText(tensor.sizes());
}

at::ScalarType ToTorch(data::ElementType type) {
  switch (type) {
    case data::ElementType::kFloat32:
      return at::kFloat;
    case data::ElementType::kInt64:
      return at::kLong;
    case data::ElementType::kUint8:
      return at::kByte;
    case data::ElementType::kBool:
      return at::kBool;
  }
  return at::kFloat;
}

absl::StatusOr<torch::jit::Module> BuildModule(const ModuleBlueprint& root, std::uint64_t seed) {
  try {
    return Builder(seed).Build(root, "");
  } catch (const std::exception& error) {
    return TorchError("model.builtin", error);
  }
}

absl::StatusOr<torch::jit::Module> LoadModule(const std::string& path, const std::string& field) {
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status)) {
    return data::AtField(field, absl::NotFoundError(path + ": no such file"));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return data::AtField(field, absl::InvalidArgumentError(path + " is not a regular file"));
  }
  try {
    return torch::jit::load(path, at::kCPU);
  } catch (const std::exception& error) {
    return data::AtField(field, absl::InvalidArgumentError(
                                    path + " does not load as TorchScript: " + OneLine(error) +
                                    "; allowed is what torch.jit.save writes, not torch.save"));
  }
}

torch::jit::Module HostCopy(const torch::jit::Module& module) {
  return torch::jit::Module(HostCopies().Of(module._ivalue()));
}

absl::Status SaveModule(torch::jit::Module module, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<tensors::AtomicFile>> file = tensors::AtomicFile::Open(path);
  if (!file.ok()) return file.status();
  absl::Status written;
  // libtorch may throw in a destructor after a short write: it is told that all went well, and the
  // error stays in `written`.
  const auto append = [&file, &written](const void* bytes, std::size_t size) {
    written = (*file)->Append(bytes, size);
    return size;
  };
  module.eval();
  try {
    torch::jit::ExportModule(IsOnHost(module) ? module : HostCopy(module), append);
  } catch (const std::exception& error) {
    written =
        absl::Status(CodeOf(error, absl::StatusCode::kInternal), path + ": " + OneLine(error));
  }
  module.train();
  return written.ok() ? (*file)->Commit() : written;
}

absl::Status SaveTensors(const torch::jit::Module& module, const std::string& path) {
  std::vector<tensors::NamedTensor> named;
  std::vector<at::Tensor> held;  // what the spans of `named` point to
  const absl::Status status =
      ForEachTensor(module, [&](tensors::NamedTensor tensor, at::Tensor flat) {
        named.push_back(std::move(tensor));
        held.push_back(std::move(flat));
      });
  return status.ok() ? tensors::WriteSafetensors(path, std::move(named)) : status;
}

absl::Status CopyTensors(const torch::jit::Module& module, tensors::TensorsCopy& copy) {
  copy.tensors.clear();
  return ForEachTensor(module, [&copy](tensors::NamedTensor tensor, const at::Tensor&) {
    const std::size_t index = copy.tensors.size();
    if (copy.memory.size() == index) copy.memory.emplace_back();
    std::vector<std::byte>& memory = copy.memory[index];
    memory.assign(tensor.bytes.begin(), tensor.bytes.end());
    tensor.bytes = memory;
    copy.tensors.push_back(std::move(tensor));
  });
}

absl::Status LoadTensors(const torch::jit::Module& module, const std::string& path) {
  const absl::StatusOr<tensors::SafetensorsFile> file = tensors::ReadSafetensors(path);
  if (!file.ok()) return file.status();
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : module.named_parameters()) tensors[name] = tensor;
  for (const auto& [name, tensor] : module.named_buffers()) tensors[name] = tensor;
  std::vector<tensors::WantedTensor> wanted;
  for (const auto& [name, tensor] : tensors) {
    const char* const type = SafetensorsType(tensor.scalar_type());
    wanted.push_back(
        {.name = name, .type = type == nullptr ? "?" : type, .shape = tensor.sizes().vec()});
  }
  const std::string differences = tensors::DifferencesFrom(*file, wanted);
  if (!differences.empty()) {
    return absl::InvalidArgumentError(data::Quoted(path) + ": " + differences);
  }
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors) {
    // Bytes of a file are not aligned: by way of a tensor that is.
    at::Tensor values = at::empty(tensor.sizes(), tensor.scalar_type());
    const std::span<const std::byte> bytes = file->tensors.at(name).bytes;
    if (!bytes.empty()) std::memcpy(values.data_ptr(), bytes.data(), bytes.size());
    tensor.copy_(values);
  }
  return absl::OkStatus();
}

}  // namespace tactus::model
