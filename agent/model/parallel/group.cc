#include "agent/model/parallel/group.h"

#include <span>
#include <utility>

#include "agent/collective/root_sum.h"
#include "base/check.h"

namespace tactus::model {
namespace {

// The tensor's memory, in the order in which it lies there.
std::span<float> MemoryOf(const at::Tensor& tensor) {
  TACTUS_CHECK(tensor.scalar_type() == at::kFloat && tensor.is_cpu());
  TACTUS_CHECK(tensor.is_non_overlapping_and_dense());
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::uint64_t LengthOf(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel());
}

}  // namespace

at::Tensor Underway::Take() {
  if (collective_ != nullptr) group_->WaitFor(*collective_);
  collective_.reset();
  conversation_.reset();
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

Underway Group::StartBroadcast(const at::Tensor& own, int root) {
  if (size_ == 1) return Underway(own);
  at::Tensor tensor = own;
  if (rank_ != root) {
    tensor = at::empty_like(own);  // strides and all
    volume_.broadcast += LengthOf(own);
  }
  auto collective = transport_->StartBroadcast(MemoryOf(tensor), root);
  return {*this, std::move(tensor), nullptr, std::move(collective)};
}

Underway Group::StartRootSum(at::Tensor tensor, int root) {
  if (size_ == 1) return Underway(std::move(tensor));
  if (rank_ != root) volume_.summed += LengthOf(tensor);
  auto sum = std::make_unique<collective::RootSum>(*transport_, MemoryOf(tensor), root);
  auto collective = transport_->StartConversation(*sum);
  return {*this, std::move(tensor), std::move(sum), std::move(collective)};
}

void Group::AllSum(const at::Tensor& tensor) {
  if (size_ == 1 || tensor.numel() == 0) return;
  const auto members = static_cast<std::uint64_t>(size_);
  volume_.all_summed += 2 * LengthOf(tensor) * (members - 1) / members;
  WaitFor(*transport_->StartAllReduceSum(MemoryOf(tensor)));
}

at::Tensor Group::AllGather(const at::Tensor& own) {
  if (size_ == 1) return own.unsqueeze(0);
  const at::Tensor from = own.contiguous();
  std::vector<std::int64_t> shape = from.sizes().vec();
  shape.insert(shape.begin(), size_);
  at::Tensor all = at::empty(shape, from.options());
  volume_.gathered += LengthOf(own) * static_cast<std::uint64_t>(size_ - 1);
  collective::AllGather gather(*transport_, MemoryOf(from), MemoryOf(all));
  WaitFor(*transport_->StartConversation(gather));
  return all;
}

}  // namespace tactus::model
