#include "agent/engine/combine/sixteen_bits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "cuda/ops/convert.h"
#include "cuda/ops/extremes.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

constexpr int kLargestExponent = 14;  // of what is sent

float NoFactor(std::span<const float>) { return 1; }

// A slice as it travels: the factor, then the values.
std::size_t CodedBytes(std::size_t length) {
  return sizeof(float) + length * sizeof(std::uint16_t);
}

class SixteenBitTalk : public PieceTalk {
 public:
  explicit SixteenBitTalk(const SixteenBitFormat& format) : format_(format) {}

  std::size_t turns() const override { return 2; }
  std::size_t FixedBytes(std::size_t turn) const override {
    return PieceTalk::FixedBytes(turn) + CodedBytes(0);
  }
  void Begin(std::size_t turn) override { turn == 0 ? SendParts() : SendSum(); }
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    return outgoing_.Of(turn == 0 ? peer : rank());
  }
  std::span<std::byte> Incoming(std::size_t, int peer) override { return incoming_.Of(peer); }
  void End() override {
    for (int owner = 0; owner < size(); ++owner) {
      Decode((owner == rank() ? outgoing_ : incoming_).Of(owner), 0, OwnedBy(owner));
    }
  }

 private:
  std::span<float> OwnedBy(int owner) const {
    const cuda::FlatRange slice = SliceOf(owner, values().size());
    return values().subspan(slice.offset, slice.length);
  }
  std::size_t CodedBytesOf(int owner) const { return CodedBytes(OwnedBy(owner).size()); }

  void SendParts() {
    outgoing_.MakeRoom(SizesOf([&](int owner) {
      return owner == rank() ? 0 : lanes().size_bytes() + CodedBytesOf(owner);
    }));
    incoming_.MakeRoom(SizesOf([&](int) { return lanes().size_bytes() + CodedBytesOf(rank()); }));
    for (int owner = 0; owner < size(); ++owner) {
      if (owner == rank()) continue;
      const std::span<std::byte> message = outgoing_.Of(owner);
      PutLanes(message);
      Encode(OwnedBy(owner), message.subspan(lanes().size_bytes()));
    }
  }

  void SendSum() {
    SumLanes(incoming_);
    SumParts();
    outgoing_.MakeRoom(
        SizesOf([&](int member) { return member == rank() ? CodedBytesOf(rank()) : 0; }));
    incoming_.MakeRoom(SizesOf([&](int owner) { return CodedBytesOf(owner); }));
    Encode(OwnedBy(rank()), outgoing_.Of(rank()));
  }

  // The own slice becomes the sum of all, by stretches that stay in the cache.
  void SumParts() {
    constexpr std::size_t kBlock = 1024;
    std::array<float, kBlock> sums;
    std::array<float, kBlock> decoded;
    const std::span<float> own = OwnedBy(rank());
    for (std::size_t begin = 0; begin < own.size(); begin += kBlock) {
      const std::span<float> block = own.subspan(begin, std::min(kBlock, own.size() - begin));
      for (int member = 0; member < size(); ++member) {
        std::span<const float> part = block;
        if (member != rank()) {
          const std::span<float> to(decoded.data(), block.size());
          Decode(incoming_.Of(member).subspan(lanes().size_bytes()), begin, to);
          part = to;
        }
        if (member == 0) {
          std::ranges::copy(part, sums.begin());
        } else {
          cuda::host::Axpy(1, part, {sums.data(), part.size()});
        }
      }
      std::copy_n(sums.begin(), block.size(), block.begin());
    }
  }

  void Encode(std::span<const float> from, std::span<std::byte> coded) const {
    const float factor = format_.factor(from);
    std::memcpy(coded.data(), &factor, sizeof(factor));
    format_.to(factor, from, NumbersIn<std::uint16_t>(coded.subspan(sizeof(factor))));
  }

  // to <- the values of a coded slice from `begin` on.
  void Decode(std::span<std::byte> coded, std::size_t begin, std::span<float> to) const {
    float factor = 1;
    std::memcpy(&factor, coded.data(), sizeof(factor));
    format_.from(1 / factor,
                 NumbersIn<std::uint16_t>(coded.subspan(sizeof(factor))).subspan(begin, to.size()),
                 to);
  }

  const SixteenBitFormat& format_;
  Messages outgoing_;
  Messages incoming_;
};

}  // namespace

const SixteenBitFormat kFloat16Format{
    .factor = Float16Factor, .to = cuda::host::ToFloat16, .from = cuda::host::FromFloat16};
const SixteenBitFormat kBfloat16Format{
    .factor = NoFactor, .to = cuda::host::ToBfloat16, .from = cuda::host::FromBfloat16};

// Its inverse has to be a normal number, too.
float Float16Factor(std::span<const float> values) {
  constexpr int kExponentMax = 126;
  float largest = 0;
  float nonfinite = 0;
  cuda::host::ExtremesPerSegment(values, {{.length = values.size()}},
                                 {.max_abs = {&largest, 1}, .nonfinite = {&nonfinite, 1}});
  if (largest == 0) return 1;
  return std::ldexp(1.0f, std::min(kLargestExponent - std::ilogb(largest), kExponentMax));
}

std::unique_ptr<PieceTalk> SixteenBitEncoding::MakeTalk(const Piece&) {
  return std::make_unique<SixteenBitTalk>(format_);
}

}  // namespace tactus::engine
