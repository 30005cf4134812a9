// The identity among encodings: float32 as they are, summed by an all-reduce.

#pragma once

#include "agent/engine/encoding.h"

namespace tactus::engine {

class DenseEncoding : public Encoding {
 public:
  void Prepare(const Piece&) override {}

  // One collective for values and lanes, as they are one stretch of memory.
  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override {
    return transport.StartAllReduceSum(
        {piece.values.data(), piece.values.size() + piece.lanes.size()});
  }

  void Restore(const Piece&) override {}

  std::uint64_t Bytes(const Piece& piece) const override {
    return piece.values.size_bytes() + piece.lanes.size_bytes();
  }

  std::vector<Residual> Residuals() override { return {}; }
};

}  // namespace tactus::engine
