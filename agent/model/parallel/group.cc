#include "agent/model/parallel/group.h"

#include <span>
#include <utility>

#include "base/check.h"

namespace tactus::model {
namespace {

// The tensor's memory, in the order in which it lies there.
std::span<float> MemoryOf(const at::Tensor& tensor) {
  TACTUS_CHECK(tensor.scalar_type() == at::kFloat);
  TACTUS_CHECK(tensor.is_non_overlapping_and_dense());
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::uint64_t LengthOf(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel());
}

}  // namespace

at::Tensor Underway::Take() {
  if (collective_ != nullptr) group_->Follow(std::move(collective_), {tensor_});
  return std::move(tensor_);
}

void Group::Abort(const std::string& reason) {
  if (transport_ != nullptr) transport_->Abort(reason);
  if (partner_ != nullptr && partner_->transport_ != nullptr) partner_->transport_->Abort(reason);
}

void Group::WaitFor(collective::Collective& collective) {
  const collective::Completion completion = collective.Wait();
  if (completion.progress != collective::Progress::kFailed) return;
  Abort(completion.reason);
  throw LostMesh(completion.reason);
}

void Group::Follow(std::unique_ptr<collective::Collective> collective,
                   std::vector<at::Tensor> memory) {
  if (collective->WaitOnDevice() != collective::Progress::kRunning) return WaitFor(*collective);
  followed_.push_back({std::move(memory), std::move(collective)});
  while (!followed_.empty()) {
    collective::Collective& first = *followed_.front().collective;
    const bool running = first.Poll() == collective::Progress::kRunning;
    if (running && followed_.size() <= kFollowedMax) return;
    WaitFor(first);
    followed_.pop_front();
  }
}

void Group::Settle() {
  for (; !followed_.empty(); followed_.pop_front()) WaitFor(*followed_.front().collective);
}

Underway Group::StartBroadcast(const at::Tensor& own, int root) {
  if (size_ == 1) return Underway(own);
  at::Tensor tensor = own;
  if (rank_ != root) {
    tensor = at::empty_like(own);  // strides and all
    volume_.broadcast += LengthOf(own);
  }
  auto collective = transport_->StartBroadcast(MemoryOf(tensor), root);
  return {*this, std::move(tensor), std::move(collective)};
}

Underway Group::StartRootSum(at::Tensor tensor, int root) {
  if (size_ == 1) return Underway(std::move(tensor));
  if (rank_ != root) volume_.summed += LengthOf(tensor);
  auto collective = transport_->StartRootSum(MemoryOf(tensor), root);
  return {*this, std::move(tensor), std::move(collective)};
}

void Group::AllSum(const at::Tensor& tensor) {
  if (size_ == 1 || tensor.numel() == 0) return;
  const auto members = static_cast<std::uint64_t>(size_);
  volume_.all_summed += 2 * LengthOf(tensor) * (members - 1) / members;
  Follow(transport_->StartAllReduceSum(MemoryOf(tensor)), {tensor});
}

at::Tensor Group::AllGather(const at::Tensor& own) {
  if (size_ == 1) return own.unsqueeze(0);
  const at::Tensor from = own.contiguous();
  std::vector<std::int64_t> shape = from.sizes().vec();
  shape.insert(shape.begin(), size_);
  at::Tensor all = at::empty(shape, from.options());
  volume_.gathered += LengthOf(own) * static_cast<std::uint64_t>(size_ - 1);
  Follow(transport_->StartAllGather(MemoryOf(from), MemoryOf(all)), {from, all});
  return all;
}

}  // namespace tactus::model
