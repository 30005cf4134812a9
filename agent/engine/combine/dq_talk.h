// DQ-SGD's conversation over one piece. In three turns a member sends
//
//   to all         nu of every unit, how many values are not finite, lanes
//   to the owners  codes of their slices, in b bits with the agreed nu as their scale
//   to all         the sums of the codes, exactly, where these fit into kDqBitsMax bits; else the
//                  sum is quantised anew, with its own largest magnitude and in b bits
//
// Bits follow from what all members know after the first turn, so all know the messages' lengths. A
// unit of zeros sends nothing. Where any value of a piece is not finite, its sum is not a number
// and no codes are sent: all skip the update.
//
// Source: design; modes A and B of the specification, chosen as it has it by default. Differs: mode
// A's sums take as many bits as they need, and no carrier's.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/engine/combine/dq_bits.h"
#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/ops/philox.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// A stretch of a tensor, quantised by itself or sent as float32.
struct DqStretch {
  cuda::FlatRange place{};
  bool dense = false;
};

// How a piece is quantised.
struct DqRule {
  double spacing = 0;  // 0: the finest that takes no more than so many bits a value
  double bits = 4;
  cuda::Draws draws{};  // but for the member and the stream
};

class DqTalk : public PieceTalk {
 public:
  // The stretches in a piece at `offset`, which outlive this, and the number of the first among
  // those of the model: by it a unit has draws of its own, whatever piece it is in.
  DqTalk(std::span<const DqStretch> stretches, std::uint32_t first_number, std::size_t offset);

  // Of the conversation that is opened next.
  void SetRule(const DqRule& rule) { rule_ = rule; }

  // Of the last conversation, once it is done: whether a value was not finite, and what is not of
  // dense tensors, with the agreed magnitudes.
  bool spoilt() const { return spoilt_; }
  std::vector<DqUnit> CodedUnits() const;
  // What all-reduces that send as much would be of, lanes left out. [bytes]
  std::uint64_t payload() const;

  std::size_t turns() const override { return 3; }
  void Begin(std::size_t turn) override;
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    return outgoing_.Of(turn == kCodes ? peer : rank());
  }
  std::span<std::byte> Incoming(std::size_t, int peer) override { return incoming_.Of(peer); }
  void End() override;

 protected:
  void Opened() override;

 private:
  static constexpr std::size_t kNorms = 0;
  static constexpr std::size_t kCodes = 1;
  static constexpr std::size_t kSums = 2;

  // The units that a member owns, as a table of their own.
  struct Slice {
    std::size_t first = 0;  // unit
    cuda::SegmentTable table{};

    // Theirs of what is one a unit.
    template <typename T>
    std::span<T> Of(std::vector<T>& all) const {
      return std::span(all).subspan(first, table.size());
    }
  };
  // The parts of a message of a slice.
  struct Parts {
    std::span<float> scales{};         // one a unit; of sums
    std::span<std::uint32_t> words{};  // codes
    std::span<float> dense{};          // the values of dense units
  };

  void CutSlices();
  void SendNorms();
  void AgreeOnNorms();
  void ChooseBits();
  void SendCodes();
  void SumCodes();
  void ScaleSums();
  void SendSums();

  Slice& SliceOf(int owner) { return slices_[static_cast<std::size_t>(owner)]; }
  std::size_t BytesOf(const Slice& slice, std::size_t turn);
  Parts PartsOf(const Slice& slice, std::size_t turn, std::span<std::byte> message);
  // Calls each(the unit's values, the same place among the message's dense ones).
  template <typename Each>
  void ForEachDense(const Slice& slice, std::span<float> dense, const Each& each);

  const std::span<const DqStretch> stretches_;
  const std::uint32_t first_number_;
  cuda::SegmentTable table_;   // of the units, from the piece's begin
  std::vector<Slice> slices_;  // by owner
  DqRule rule_{};
  cuda::Draws draws_{};
  bool spoilt_ = false;
  std::size_t sent_ = 0;  // [bytes], without lanes

  // One a unit: what is sent to the owners, and what they send.
  std::vector<float> largest_;  // nu
  std::vector<float> nonfinite_;
  std::vector<std::uint8_t> dense_;     // whether it travels as float32
  std::vector<std::uint8_t> bits_;      // of a code; 0: none is sent
  std::vector<std::uint8_t> sum_bits_;  // of a sum's
  std::vector<std::uint8_t> exact_;     // whether sums are of codes, and not of what they stand for
  std::vector<float> code_scales_;      // with which codes are added up
  std::vector<float> sum_scales_;       // with which sums are quantised
  Messages outgoing_;
  Messages incoming_;
};

}  // namespace tactus::engine
