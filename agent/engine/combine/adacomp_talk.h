// AdaComp's conversation over one piece; see adacomp_encoding.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/residual_encoding.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// A tensor of a piece.
struct AdacompPart {
  cuda::FlatRange place{};  // from the piece's begin
  std::size_t bin = 0;      // 0: it travels dense

  bool encoded() const { return bin > 0; }
};

class AdacompTalk : public ResidualTalk {
 public:
  using Part = AdacompPart;

  explicit AdacompTalk(std::vector<AdacompPart> parts) : parts_(std::move(parts)) {}

  // What all-reduces that send as much would be of, lanes left out. [bytes]
  std::uint64_t payload() const;

  std::size_t turns() const override { return 2; }
  void Begin(std::size_t turn) override { turn == 0 ? SendSizes() : SendMessages(); }
  std::span<const std::byte> Outgoing(std::size_t, int) override { return outgoing_.Of(rank()); }
  std::span<std::byte> Incoming(std::size_t, int peer) override { return incoming_.Of(peer); }
  void End() override;

 private:
  using Size = std::uint32_t;
  static constexpr Size kNotFinite = 0xffffffff;  // in place of the first

  void SendSizes();
  void AgreeOnSizes();
  void SendMessages();
  bool AddMessages();

  std::span<Size> SizesFrom(int member) {
    return std::span(all_sizes_)
        .subspan(static_cast<std::size_t>(member) * parts_.size(), parts_.size());
  }
  std::span<float> ValuesOf(const AdacompPart& part) const {
    return values().subspan(part.place.offset, part.place.length);
  }

  const std::vector<AdacompPart> parts_;
  std::vector<std::byte> coded_;  // messages of the parts, one behind the other
  std::vector<Size> own_sizes_;   // theirs [bytes]
  std::vector<Size> all_sizes_;   // those of every member, by rank
  bool finite_ = true;            // this member's part
  bool spoilt_ = false;           // any member's is not
  std::size_t sent_ = 0;          // [bytes], without lanes
  Messages outgoing_;
  Messages incoming_;
};

}  // namespace tactus::engine
