// Encoding: in which form the members' vectors travel while they are summed. It stands between what
// a member gathered and the transport:
//
//   own values --Prepare--> what is put in --Exchange--> what came --Restore--> the members' sum
//
// DenseEncoding sends what it is given. One that sends less either is right on average, or keeps
// what it left out as a residual and adds it to what is sent next.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// A stretch of a buffer that travels by itself. The device's memory.
struct Piece {
  std::size_t offset = 0;     // of the values in the vector [elements]
  std::span<float> values{};  // of the vector; may be empty
  std::span<float> lanes{};   // right behind them in memory, of the last piece alone: never encoded
};

// What an encoding knows of the group that it is used in.
struct EncodedMembers {
  std::vector<std::uint32_t> nodes{};  // of each rank, by any numbers; empty: all are apart
  // Of the vector, the same on all members: what several members of a replica have a copy of.
  // Looked at where members have parts alone.
  std::vector<cuda::FlatRange> copies{};
};

// A part of what an encoding keeps; see OfVector. The device's memory, or the host's.
struct Residual {
  std::string name{};  // within the encoding; not empty, and without a dot
  std::span<float> values{};
};

// One member's encoding of one vector after the other; lives as long as the member, through several
// groups. Each piece of a vector goes through the three steps in their order, but the steps of
// different pieces may come between; pieces are the same in every combination of a group, and
// exchanged in the same order by all members. Work is queued on the device, and nobody waits for it
// here but who encodes on the host. One thread.
class Encoding {
 public:
  virtual ~Encoding() = default;

  // Makes this member's values what it puts in. Values that are not finite may come, and must leave
  // residuals finite: their combination is skipped by all members, and training goes on.
  virtual void Prepare(const Piece& piece) = 0;

  // Starts to exchange what was prepared with the group's other members; lanes become their sums,
  // like by an all-reduce. The piece's memory is left alone until the collective is done.
  virtual std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                           const Piece& piece) = 0;

  // The exchange is done, or the device's queue stands behind it: makes the piece's values the sum
  // over the members of what each put in, the same bits on all.
  virtual void Restore(const Piece& piece) = 0;

  // Payload of the exchange of one piece. [bytes]
  virtual std::uint64_t Bytes(const Piece& piece) const = 0;

  // What is kept from one combination to the next, always of the same names and lengths; empty:
  // nothing. This member's own. May be written between two combinations, to go on from a state.
  virtual std::vector<Residual> Residuals() = 0;

  // What became of the last combination, before the next begins: all members have applied it, or
  // none, and then residuals are those from before it. Also of combinations without it.
  virtual void Settle(bool applied) = 0;

  // It is as it was when it was made.
  virtual void Forget() = 0;

  // It comes into force in the place of another, between two rounds of this member.
  virtual void Follow() {}

  // A group meets.
  virtual void Meet(const EncodedMembers& /*members*/) {}
};

// The identity: float32 as they are, summed by an all-reduce.
class DenseEncoding : public Encoding {
 public:
  void Prepare(const Piece&) override {}
  void Restore(const Piece&) override {}

  // One collective for values and lanes, as they are one stretch of memory.
  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override {
    return transport.StartAllReduceSum(
        {piece.values.data(), piece.values.size() + piece.lanes.size()});
  }

  std::uint64_t Bytes(const Piece& piece) const override {
    return piece.values.size_bytes() + piece.lanes.size_bytes();
  }

  std::vector<Residual> Residuals() override { return {}; }
  void Settle(bool) override {}
  void Forget() override {}
};

}  // namespace tactus::engine
