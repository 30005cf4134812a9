// Encodings with residuals that cut the vector into parts, each encoded by itself or sent as
// float32.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/combine/residual_encoding.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Talk: a ResidualTalk that is made of a vector of Talk::Part, whose places count from the piece's
// begin, and tells its payload(). Talk::Part: a stretch of the vector, `place`, and whether it is
// encoded().
template <typename Talk>
class PartedEncoding : public ResidualEncoding {
 public:
  using Part = typename Talk::Part;

  // parts: all of the segments', in their order, none across two. The device outlives this.
  PartedEncoding(std::string name, const ResidualRound& round, cuda::Device& device,
                 const cuda::SegmentTable& segments, std::vector<Part> parts)
      : ResidualEncoding(std::move(name), round, device, cuda::FlatLength(segments),
                         EncodedOf(parts)),
        parts_(std::move(parts)) {}

 protected:
  // Pieces consist of whole segments, and so of whole parts.
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override {
    std::vector<Part> parts;
    const std::size_t end = piece.offset + piece.values.size();
    for (Part part : parts_) {
      if (part.place.offset < piece.offset || part.place.offset >= end) continue;
      part.place.offset -= piece.offset;
      parts.push_back(part);
    }
    return std::make_unique<Talk>(std::move(parts));
  }

  std::uint64_t BytesOfValues(const Piece&, const PieceTalk& talk) const override {
    return static_cast<const Talk&>(talk).payload();
  }

  const std::vector<Part>& parts() const { return parts_; }

 private:
  static std::vector<cuda::FlatRange> EncodedOf(const std::vector<Part>& parts) {
    std::vector<cuda::FlatRange> encoded;
    for (const Part& part : parts) {
      if (part.encoded()) encoded.push_back(part.place);
    }
    return encoded;
  }

  const std::vector<Part> parts_;
};

}  // namespace tactus::engine
