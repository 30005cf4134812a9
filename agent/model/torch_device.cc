#include "agent/model/torch_device.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <charconv>
#include <mutex>
#include <string_view>

#include "agent/data/field_error.h"
#include "agent/model/torch_module.h"

namespace tactus::model {
namespace {

constexpr std::string_view kHostPrefix = "cpu:";
constexpr std::string_view kCudaPrefix = "cuda:";

// The number behind the prefix.
std::optional<unsigned> IndexBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  unsigned index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return index;
}

// Since 2.4 a kind of device is an argument of autocast's functions, before it was in their names.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
void SetAutocast(at::DeviceType kind, bool enabled) {
  at::autocast::set_autocast_dtype(kind, at::kBFloat16);
  at::autocast::set_autocast_enabled(kind, enabled);
}
#else
void SetAutocast(at::DeviceType kind, bool enabled) {
  if (kind == at::kCUDA) {
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(enabled);
  } else {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(enabled);
  }
}
#endif

}  // namespace

absl::StatusOr<TorchDevice> TorchDevice::Open(const std::string& name, cuda::Stream stream) {
  TorchDevice opened;
  if (IndexBehind(kHostPrefix, name)) return opened;
  const std::optional<unsigned> index = IndexBehind(kCudaPrefix, name);
  if (!index) {
    return data::AtField(
        "workers.device",
        absl::InvalidArgumentError("\"" + name + "\" is unknown; allowed: cpu:N, cuda:N"));
  }
  try {
    const absl::StatusOr<c10::Stream> torch_stream = OpenCudaStream(*index, stream);
    if (!torch_stream.ok()) return torch_stream.status();
    opened.device_ = torch_stream->device();
    opened.stream_ = *torch_stream;
  } catch (const std::exception& error) {
    return TorchError("workers.device", error);
  }
  return opened;
}

std::vector<at::Generator> TorchDevice::Generators() const {
  std::vector<at::Generator> generators = {at::globalContext().defaultGenerator(at::kCPU)};
  if (!is_host()) generators.push_back(at::globalContext().defaultGenerator(device_));
  return generators;
}

void TorchDevice::Seed(std::uint64_t seed) const {
  for (at::Generator& generator : Generators()) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

at::Tensor TorchDevice::Bring(const at::Tensor& tensor) const {
  if (is_host()) return tensor;
  return tensor.to(tensor.options().device(device_), /*non_blocking=*/true);
}

void TorchDevice::Move(torch::jit::Module& module) const {
  if (!is_host()) module.to(device_);
}

ComputeIn::ComputeIn(Precision precision, const TorchDevice& device)
    : casts_(precision == Precision::kBfloat16), kind_(device.device().type()) {
  if (casts_) SetAutocast(kind_, true);
}

ComputeIn::~ComputeIn() {
  if (!casts_) return;
  SetAutocast(kind_, false);
  // It holds narrow copies of the parameters, which the optimizer is about to change.
  at::autocast::clear_cache();
}

}  // namespace tactus::model
