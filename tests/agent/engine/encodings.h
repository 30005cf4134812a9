// Encodings for tests: simple enough that what they do to training is known exactly.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/engine/combine/encodings.h"
#include "agent/engine/combine/sixteen_bits.h"

namespace tactus::engine {

// Values travel as a multiple of themselves, by a power of two, so that every sum is that of dense
// values bit for bit. In the host's memory, as all of these.
class ScalingEncoding : public Encoding {
 public:
  explicit ScalingEncoding(float factor) : factor_(factor) {}

  void Prepare(const Piece& piece) override { Scale(factor_, piece.values); }
  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override {
    return transport.StartAllReduceSum(
        {piece.values.data(), piece.values.size() + piece.lanes.size()});
  }
  void Restore(const Piece& piece) override { Scale(1 / factor_, piece.values); }
  std::uint64_t Bytes(const Piece& piece) const override {
    return piece.values.size() + piece.lanes.size_bytes();
  }
  std::vector<Residual> Residuals() override { return {}; }
  void Settle(bool) override {}
  void Forget() override {}

 private:
  static void Scale(float factor, std::span<float> values) {
    for (float& value : values) value *= factor;
  }

  const float factor_;
};

// Values travel as whole multiples of a quantum; what is below stays behind for the next time. One
// that is not finite travels as it is and leaves the residual alone.
class RoundingEncoding : public ScalingEncoding {
 public:
  RoundingEncoding(float quantum, std::size_t length)
      : ScalingEncoding(1 / quantum), quantum_(quantum), residual_(length) {}

  void Prepare(const Piece& piece) override {
    for (std::size_t i = 0; i < piece.values.size(); ++i) {
      float& value = piece.values[i];
      float& residual = residual_[piece.offset + i];
      if (!std::isfinite(value)) continue;
      const float owed = value + residual;
      value = std::nearbyint(owed / quantum_) * quantum_;
      residual = owed - value;
    }
    ScalingEncoding::Prepare(piece);
  }
  std::vector<Residual> Residuals() override { return {{.name = "left", .values = residual_}}; }
  void Forget() override { std::ranges::fill(residual_, 0.0f); }

 private:
  const float quantum_;
  std::vector<float> residual_;
};

// As it ships, in place of dense values.
inline MakeEncoding SixteenBits(const SixteenBitFormat& format) {
  return [&format](cuda::Device& device, std::size_t) {
    return std::make_unique<SixteenBitEncoding>(format, device);
  };
}

}  // namespace tactus::engine
