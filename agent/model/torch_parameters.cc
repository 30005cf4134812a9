#include "agent/model/torch_parameters.h"

#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/model/torch_module.h"
#include "base/check.h"

namespace tactus::model {
namespace {

using torch::autograd::variable_list;

// Runs behind a parameter's AccumulateGrad: on the host in the thread that called backward, else in
// autograd's thread for the device.
class AccumulatedHook : public torch::autograd::FunctionPostHook {
 public:
  explicit AccumulatedHook(std::function<void()> accumulated)
      : accumulated_(std::move(accumulated)) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    accumulated_();
    return outputs;
  }

 private:
  const std::function<void()> accumulated_;
};

bool SameMemory(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes();
}

at::Tensor View(std::span<float> flat, const cuda::Segment& segment, at::Device device) {
  return torch::from_blob(flat.subspan(segment.offset, segment.length).data(), segment.shape,
                          at::TensorOptions().dtype(at::kFloat).device(device));
}

at::Tensor WholeView(std::span<float> flat, at::Device device) {
  return torch::from_blob(flat.data(), {static_cast<std::int64_t>(flat.size())},
                          at::TensorOptions().dtype(at::kFloat).device(device));
}

// Zero in the padding between and behind the segments.
void ClearGaps(const cuda::SegmentTable& segments, const at::Tensor& flat) {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t begin = segments[i].offset + segments[i].length;
    const std::size_t end =
        i + 1 < segments.size() ? segments[i + 1].offset : cuda::FlatLength(segments);
    if (begin == end) continue;
    flat.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)).zero_();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FlatParameters>> FlatParameters::Of(const torch::jit::Module& module,
                                                                   const std::string& field) {
  std::unique_ptr<FlatParameters> result(new FlatParameters());
  for (const auto& parameter : module.named_parameters()) {
    if (!parameter.value.requires_grad()) continue;
    const absl::Status added = result->Add(parameter.name, parameter.value);
    if (!added.ok()) {
      return data::AtField(field, added);
    }
  }
  if (result->segments_.empty()) {
    return data::AtField(
        field, absl::InvalidArgumentError(
                   "the model has no parameter that needs a gradient, as after torch.jit.freeze"));
  }
  const absl::Status apart = result->CheckOverlaps();
  if (!apart.ok()) return data::AtField(field, apart);
  // A backward pass usually comes first to what was registered last: so the first bucket is full
  // first.
  std::ranges::reverse(result->segments_);
  std::ranges::reverse(result->slots_);
  cuda::AssignOffsets(result->segments_);
  return result;
}

absl::Status FlatParameters::Add(const std::string& name, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat) {
    return absl::InvalidArgumentError("parameter " + name + " is " + Describe(tensor) +
                                      "; allowed: float32");
  }
  if (!tensor.is_contiguous()) {
    return absl::InvalidArgumentError("parameter " + name + " " + ShapeText(tensor.sizes()) +
                                      " is not contiguous");
  }
  if (tensor.numel() == 0) {
    return absl::InvalidArgumentError("parameter " + name + " " + ShapeText(tensor.sizes()) +
                                      " has no elements");
  }
  for (Slot& slot : slots_) {
    if (!SameMemory(slot.tensors.front(), tensor)) continue;
    const bool same = std::ranges::any_of(
        slot.tensors, [&tensor](const at::Tensor& other) { return other.is_same(tensor); });
    if (!same) slot.tensors.push_back(tensor);
    return absl::OkStatus();
  }
  segments_.push_back({.name = name,
                       .length = static_cast<std::size_t>(tensor.numel()),
                       .shape = tensor.sizes().vec()});
  slots_.emplace_back().tensors.push_back(tensor);
  return absl::OkStatus();
}

absl::Status FlatParameters::CheckOverlaps() const {
  struct Range {
    const float* begin;
    const float* end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const float* begin = slots_[i].tensors.front().data_ptr<float>();
    ranges.push_back({begin, begin + segments_[i].length, &segments_[i].name});
  }
  std::ranges::sort(ranges, std::less<>(), &Range::begin);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin >= ranges[i - 1].end) continue;
    return absl::InvalidArgumentError("parameters " + *ranges[i - 1].name + " and " +
                                      *ranges[i].name + " share part of their memory");
  }
  return absl::OkStatus();
}

void FlatParameters::Bind(std::span<float> parameters) {
  TACTUS_CHECK(parameters.size() >= cuda::FlatLength(segments_));
  const at::Device device = slots_.front().tensors.front().device();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const at::Tensor value = View(parameters, segments_[i], device);
    value.copy_(slots_[i].tensors.front());
    for (at::Tensor& tensor : slots_[i].tensors) {
      tensor.set_data(value);
    }
    if (!bound_) Hook(i);
  }
  bound_ = true;
  // Norms are taken over the whole buffer, gaps and all.
  ClearGaps(segments_, WholeView(parameters.first(cuda::FlatLength(segments_)), device));
}

void FlatParameters::Hook(std::size_t segment) {
  Slot& slot = slots_[segment];
  for (std::size_t i = 0; i < slot.tensors.size(); ++i) {
    Accumulator node = torch::autograd::impl::grad_accumulator(slot.tensors[i]);
    node->add_post_hook(
        std::make_unique<AccumulatedHook>([this, segment, i] { Accumulated(segment, i); }));
    slot.accumulators.push_back(std::move(node));
  }
}

FlatParameters::Pass::Pass(FlatParameters& parameters, const TakeGradient& take)
    : parameters_(parameters) {
  parameters_.Drop();  // what evaluations or a user's own backward passes may have left
  parameters_.take_ = &take;
  for (Slot& slot : parameters_.slots_) {
    slot.pending = slot.tensors.size();
    slot.taken = false;
  }
}

FlatParameters::Pass::~Pass() {
  parameters_.take_ = nullptr;
  parameters_.Drop();
}

absl::Status FlatParameters::Pass::Complete() {
  for (std::size_t i = 0; i < parameters_.slots_.size(); ++i) {
    const Slot& slot = parameters_.slots_[i];
    if (slot.taken && slot.gradient.defined()) {
      return data::AtField("model",
                           absl::InternalError("the gradient of " + parameters_.segments_[i].name +
                                               " was complete, and then there was more"));
    }
    if (!slot.taken) parameters_.HandOver(i);
  }
  return absl::OkStatus();
}

void FlatParameters::Drop() {
  for (Slot& slot : slots_) {
    slot.gradient.reset();
    for (at::Tensor& tensor : slot.tensors) tensor.mutable_grad().reset();
  }
}

// Autograd has the gradient dense and contiguous, as its parameter is, unless an operation gives a
// sparse one.
void FlatParameters::Accumulated(std::size_t segment, std::size_t tensor) {
  if (take_ == nullptr) return;
  const at::NoGradGuard no_grad;
  Slot& slot = slots_[segment];
  at::Tensor gradient = std::move(slot.tensors[tensor].mutable_grad());
  slot.tensors[tensor].mutable_grad().reset();
  if (gradient.defined()) {
    if (gradient.layout() != at::kStrided) gradient = gradient.to_dense();
    // Into memory of its own: another parameter's gradient may be a view of what this one is.
    slot.gradient = slot.gradient.defined() ? slot.gradient + gradient : gradient.contiguous();
  }
  if (slot.pending > 0 && --slot.pending == 0) HandOver(segment);
}

void FlatParameters::HandOver(std::size_t segment) {
  Slot& slot = slots_[segment];
  slot.taken = true;
  SegmentGradient gradient{.segment = segment};
  if (slot.gradient.defined()) {
    gradient.values = slot.gradient.data_ptr<float>();
    gradient.memory = {new at::Tensor(std::move(slot.gradient)),
                       [](void* tensor) { delete static_cast<at::Tensor*>(tensor); }};
    slot.gradient.reset();
  }
  (*take_)(std::move(gradient));
}

}  // namespace tactus::model
