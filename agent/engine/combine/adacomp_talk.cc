#include "agent/engine/combine/adacomp_talk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "agent/engine/combine/adacomp_bins.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

std::uint64_t AdacompTalk::payload() const {
  const auto members = static_cast<std::uint64_t>(size());
  return members < 2 ? 0 : sent_ * members / (2 * (members - 1));
}

void AdacompTalk::SendSizes() {
  coded_.clear();
  own_sizes_.clear();
  finite_ = std::isfinite(cuda::host::SquaredNorm(values()));
  for (const AdacompPart& part : parts_) {
    const std::size_t begin = coded_.size();
    if (part.encoded() && finite_) {
      AddMomentum(part.place);
      finite_ =
          AdacompEncode({.values = ValuesOf(part),
                         .left = left().subspan(part.place.offset, part.place.length),
                         .still_left = still_left().subspan(part.place.offset, part.place.length),
                         .bin = part.bin},
                        coded_);
    }
    const std::size_t dense = part.encoded() ? 0 : part.place.length * sizeof(float);
    own_sizes_.push_back(static_cast<Size>(dense + coded_.size() - begin));
  }
  const std::size_t bytes = (1 + parts_.size()) * sizeof(Size);
  const std::size_t whole = lanes().size_bytes() + bytes;
  outgoing_.MakeRoom(SizesOf([&](int member) { return member == rank() ? whole : 0; }));
  incoming_.MakeRoom(SizesOf([&](int member) { return member == rank() ? 0 : whole; }));
  sent_ = bytes * static_cast<std::size_t>(size() - 1);
  PutLanes(outgoing_.Of(rank()));
  const std::span<Size> sizes = NumbersIn<Size>(outgoing_.Of(rank()).subspan(lanes().size_bytes()));
  sizes.front() = finite_ ? 0 : kNotFinite;
  std::ranges::copy(own_sizes_, sizes.begin() + 1);
}

void AdacompTalk::AgreeOnSizes() {
  SumLanes(incoming_);
  spoilt_ = false;
  all_sizes_.resize(static_cast<std::size_t>(size()) * parts_.size());
  for (int member = 0; member < size(); ++member) {
    Messages& messages = member == rank() ? outgoing_ : incoming_;
    const std::span<Size> sizes =
        NumbersIn<Size>(messages.Of(member).subspan(lanes().size_bytes()));
    spoilt_ = spoilt_ || sizes.front() == kNotFinite;
    std::ranges::copy(sizes.subspan(1), SizesFrom(member).begin());
  }
  if (spoilt_) std::ranges::fill(all_sizes_, Size{0});
}

void AdacompTalk::SendMessages() {
  AgreeOnSizes();
  const auto bytes_from = [&](int member) {
    std::size_t bytes = 0;
    for (const Size size : SizesFrom(member)) bytes += size;
    return bytes;
  };
  outgoing_.MakeRoom(
      SizesOf([&](int member) { return member == rank() ? bytes_from(member) : 0; }));
  incoming_.MakeRoom(
      SizesOf([&](int member) { return member == rank() ? 0 : bytes_from(member); }));
  if (spoilt_) return;
  std::span<std::byte> message = outgoing_.Of(rank());
  sent_ += message.size() * static_cast<std::size_t>(size() - 1);
  std::span<const std::byte> coded = coded_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::size_t bytes = own_sizes_[i];
    if (parts_[i].encoded()) {
      std::ranges::copy(coded.first(bytes), message.begin());
      coded = coded.subspan(bytes);
    } else {
      std::ranges::copy(std::as_bytes(ValuesOf(parts_[i])), message.begin());
    }
    message = message.subspan(bytes);
  }
}

// False: one of them is none.
bool AdacompTalk::AddMessages() {
  std::vector<float> dense;
  for (int member = 0; member < size(); ++member) {
    std::span<const std::byte> message = (member == rank() ? outgoing_ : incoming_).Of(member);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t bytes = SizesFrom(member)[i];
      const std::span<float> sum = ValuesOf(parts_[i]);
      if (parts_[i].encoded()) {
        if (!AdacompAdd(message.first(bytes), parts_[i].bin, sum)) return false;
      } else {
        if (bytes != sum.size_bytes()) return false;
        dense.resize(sum.size());
        std::ranges::copy(message.first(bytes), std::as_writable_bytes(std::span(dense)).begin());
        cuda::host::Axpy(1, dense, sum);
      }
      message = message.subspan(bytes);
    }
  }
  return true;
}

void AdacompTalk::End() {
  for (const AdacompPart& part : parts_) std::ranges::fill(ValuesOf(part), 0.0f);
  if (!spoilt_ && AddMessages()) return;
  std::ranges::fill(values(), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace tactus::engine
