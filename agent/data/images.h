// Images: how their numbers are brought to a common scale, and how training varies them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// The same samples with the first input, images [channels, height, width] or [height, width] of
// float32, as
//
//   (x - mean) / deviation        by channel
//
// and Split::black to match. Without mean and deviation it is as it was.
//
// Errors, of a field of `options`: InvalidArgument, the inputs are no such images; there is not one
// number for each channel, or one for all; a deviation is not above 0; mean or deviation of images
// that their format standardises; crop is as large as the image.
absl::StatusOr<Split> Normalised(Split split, const ImageOptions& options);

// Varies the images of training, each by a draw of its own:
//
//   crop = p   the image is shifted by -p to p pixels, whole numbers, both ways alike likely; what
//              comes in from beyond its edge is black
//   flip       every second one, at random, is mirrored left to right
//
// What a sample becomes depends on seed, epoch and its index alone, so it is the same whichever
// worker reads it, and whenever. Immutable; any thread.
//
// Source: design; the usual recipe for small images: pad, crop at random, flip.
class Augmentation {
 public:
  // images: of the first input; black: see Split. Requires what Normalised found right.
  Augmentation(const ImageOptions& options, const TensorSpec& images, std::vector<float> black,
               std::uint64_t seed);

  // None, where the options ask for none.
  static std::optional<Augmentation> Of(const std::optional<ImageOptions>& options,
                                        const Split& split, std::uint64_t seed);

  // images [indices.size(), the image's elements], as Dataset::Read has them.
  void Apply(std::span<const std::uint64_t> indices, std::uint64_t epoch,
             std::span<std::byte> images) const;

 private:
  struct Draw {
    std::int64_t down = 0;  // how far the image is read from below and right of where it is put
    std::int64_t right = 0;
    bool flip = false;
  };
  Draw DrawFor(std::uint64_t index, std::uint64_t epoch) const;
  void Vary(const Draw& draw, const float* from, float* to) const;

  std::uint32_t crop_;
  bool flip_;
  std::int64_t channels_;
  std::int64_t height_;
  std::int64_t width_;
  std::vector<float> black_;  // by channel
  std::uint64_t seed_;
};

}  // namespace tactus::data
