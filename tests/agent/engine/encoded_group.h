// A group whose members sum buffers by an encoding, each on a thread of its own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combine/encodings.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Where they meet: in one process, or over TCP on loopback.
enum class Meeting { kInProcess, kTcp };

class EncodedGroup {
 public:
  static constexpr std::size_t kLanes = 5;

  struct Setup {
    int members = 2;
    policies::Encoding kind = policies::Encoding::kDense;
    cuda::SegmentTable segments{};  // offsets are assigned
    EncodingOptions options{};
    Meeting meeting = Meeting::kInProcess;
    std::size_t pieces = 1;              // at most as many as segments
    std::vector<std::uint32_t> nodes{};  // of each rank; empty: all apart
  };
  explicit EncodedGroup(Setup setup);

  // What a member puts in: the flat buffer and behind it the lanes.
  std::size_t length() const { return cuda::FlatLength(setup_.segments) + kLanes; }
  const cuda::SegmentTable& segments() const { return setup_.segments; }

  // By rank, in and out. Every member exchanges all pieces at once.
  std::vector<std::vector<float>> Sum(std::vector<std::vector<float>> buffers,
                                      const EncodedRound& round = {},
                                      const SharedMomentum& momentum = {},
                                      const CarriedMomentum& carried = {});

  // As members of another group would have it.
  void CutInto(std::size_t pieces) { setup_.pieces = pieces; }

  // So many of them meet anew, from the first on; each keeps its encodings, and those that are new
  // have their own.
  void Regroup(int members);

  Encodings& encodings(int rank) { return *members_[static_cast<std::size_t>(rank)].encodings; }

  // What became of the last sum.
  void Settle(bool applied);
  // A residual of a member's encoding.
  std::vector<float> LeftOver(int rank, std::size_t which = 0);
  void SetLeftOver(int rank, std::size_t which, const std::vector<float>& values);

  // Payload of the last sum, of a member.
  std::uint64_t bytes(int rank) const { return members_[static_cast<std::size_t>(rank)].bytes; }

 private:
  struct Member {
    std::unique_ptr<collective::Transport> transport{};
    std::unique_ptr<cuda::Device> device{};
    std::unique_ptr<Encodings> encodings{};
    std::uint64_t bytes = 0;
  };

  std::vector<Piece> PiecesOf(std::vector<float>& buffer) const;

  Setup setup_;
  std::vector<Member> members_;
};

// One buffer a member, normal values times `scale` in the segments and small whole numbers in the
// lanes; padding is zero.
std::vector<std::vector<float>> NormalBuffers(const EncodedGroup& group, int members,
                                              std::uint64_t seed, float scale = 1);

// The same with whole numbers, whose sums are exact.
std::vector<std::vector<float>> WholeBuffers(const EncodedGroup& group, int members,
                                             std::uint64_t seed);

// The sum by an all-reduce of dense values.
std::vector<float> DenseSum(const std::vector<std::vector<float>>& buffers);

// Whether all hold the same bits.
bool AllAlike(const std::vector<std::vector<float>>& buffers);

}  // namespace tactus::engine
