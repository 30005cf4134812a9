#include "agent/data/images.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/array.h"
#include "agent/data/field_error.h"
#include "agent/data/sample_bytes.h"
#include "base/check.h"
#include "base/rng.h"

namespace tactus::data {
namespace {

struct ImageShape {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

std::optional<ImageShape> ShapeOf(const TensorSpec& spec) {
  const std::vector<std::int64_t>& shape = spec.shape;
  if (spec.type != ElementType::kFloat32 || (shape.size() != 2 && shape.size() != 3)) return {};
  return ImageShape{.channels = shape.size() == 3 ? shape.front() : 1,
                    .height = shape[shape.size() - 2],
                    .width = shape.back()};
}

absl::Status Wrong(const std::string& field, const std::string& what) {
  const absl::Status status = absl::InvalidArgumentError(what);
  return field.empty() ? status : AtField(field, status);
}

// One for each channel; `fallback` for all where none are given.
absl::StatusOr<std::vector<float>> ByChannel(const std::string& field,
                                             const std::vector<double>& given,
                                             std::int64_t channels, float fallback) {
  const auto count = static_cast<std::size_t>(channels);
  if (given.empty()) return std::vector<float>(count, fallback);
  if (given.size() != 1 && given.size() != count) {
    return Wrong(field, std::to_string(given.size()) + " numbers for images of " +
                            std::to_string(count) + " channels; allowed: " +
                            (count == 1 ? "one" : "one, or " + std::to_string(count)));
  }
  std::vector<float> numbers;
  for (std::size_t c = 0; c < count; ++c) {
    const double number = given.size() == 1 ? given.front() : given[c];
    numbers.push_back(static_cast<float>(number));
  }
  return numbers;
}

struct Scale {
  std::vector<float> mean;  // both by channel
  std::vector<float> deviation;
};

absl::StatusOr<Scale> ScaleOf(const ImageOptions& options, std::int64_t channels) {
  absl::StatusOr<std::vector<float>> mean = ByChannel("mean", options.mean, channels, 0);
  if (!mean.ok()) return mean.status();
  absl::StatusOr<std::vector<float>> deviation =
      ByChannel("deviation", options.deviation, channels, 1);
  if (!deviation.ok()) return deviation.status();
  for (const float number : *mean) {
    if (!std::isfinite(number)) return Wrong("mean", "a number is not finite");
  }
  for (const float number : *deviation) {
    if (std::isfinite(number) && number > 0) continue;
    return Wrong("deviation", std::to_string(number) + " is not above 0");
  }
  return Scale{.mean = *std::move(mean), .deviation = *std::move(deviation)};
}

// Another data set's samples, with images on another scale.
class NormalisedDataset final : public Dataset {
 public:
  NormalisedDataset(std::shared_ptr<const Dataset> raw, Scale scale)
      : raw_(std::move(raw)),
        scale_(std::move(scale)),
        pixels_(raw_->inputs().front().ElementsPerSample() / scale_.mean.size()) {}

  std::uint64_t size() const override { return raw_->size(); }
  const std::vector<TensorSpec>& inputs() const override { return raw_->inputs(); }
  const TensorSpec& targets() const override { return raw_->targets(); }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    raw_->Read(indices, inputs, targets);
    auto* const images = reinterpret_cast<std::uint8_t*>(inputs.data());
    std::size_t at = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      for (std::size_t channel = 0; channel < scale_.mean.size(); ++channel) {
        for (const std::size_t end = at + pixels_; at < end; ++at) {
          const float scaled =
              (LoadElement<float>(images, at) - scale_.mean[channel]) / scale_.deviation[channel];
          StoreElement(inputs.data(), at, scaled);
        }
      }
    }
  }

 private:
  const std::shared_ptr<const Dataset> raw_;
  const Scale scale_;
  const std::size_t pixels_;  // a channel
};

}  // namespace

absl::StatusOr<Split> Normalised(Split split, const ImageOptions& options) {
  const TensorSpec& images = split.train->inputs().front();
  const std::optional<ImageShape> shape = ShapeOf(images);
  if (!shape) {
    return Wrong("", "the inputs are of shape " + ShapeText(images.shape) +
                         "; allowed: float32 images [height, width] or [channels, height, width]");
  }
  if (options.crop >= static_cast<std::uint64_t>(std::min(shape->height, shape->width))) {
    return Wrong("crop", std::to_string(options.crop) + " of images of " +
                             std::to_string(shape->height) + " x " + std::to_string(shape->width) +
                             "; allowed: below both");
  }
  const bool scales = !options.mean.empty() || !options.deviation.empty();
  if (scales && !split.black.empty()) {
    return Wrong(options.mean.empty() ? "deviation" : "mean",
                 "these images are standardised by their format; allowed: crop and flip");
  }
  if (!scales) {
    if (split.black.empty()) split.black.assign(static_cast<std::size_t>(shape->channels), 0);
    return split;
  }
  absl::StatusOr<Scale> scale = ScaleOf(options, shape->channels);
  if (!scale.ok()) return scale.status();
  for (std::size_t channel = 0; channel < scale->mean.size(); ++channel) {
    split.black.push_back((0.0f - scale->mean[channel]) / scale->deviation[channel]);
  }
  split.train = std::make_shared<NormalisedDataset>(std::move(split.train), *scale);
  if (split.validation) {
    split.validation =
        std::make_shared<NormalisedDataset>(std::move(split.validation), *std::move(scale));
  }
  return split;
}

std::optional<Augmentation> Augmentation::Of(const std::optional<ImageOptions>& options,
                                             const Split& split, std::uint64_t seed) {
  if (!options || (options->crop == 0 && !options->flip)) return std::nullopt;
  return Augmentation(*options, split.train->inputs().front(), split.black, seed);
}

Augmentation::Augmentation(const ImageOptions& options, const TensorSpec& images,
                           std::vector<float> black, std::uint64_t seed)
    : crop_(options.crop), flip_(options.flip), black_(std::move(black)), seed_(seed) {
  const std::optional<ImageShape> shape = ShapeOf(images);
  TACTUS_CHECK(shape && black_.size() == static_cast<std::size_t>(shape->channels));
  channels_ = shape->channels;
  height_ = shape->height;
  width_ = shape->width;
}

void Augmentation::Apply(std::span<const std::uint64_t> indices, std::uint64_t epoch,
                         std::span<std::byte> images) const {
  const auto elements = static_cast<std::size_t>(channels_ * height_ * width_);
  TACTUS_CHECK(images.size() >= indices.size() * elements * sizeof(float));
  std::vector<float> from(elements);
  std::vector<float> to(elements);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::byte* const image = images.data() + i * elements * sizeof(float);
    std::memcpy(from.data(), image, elements * sizeof(float));
    Vary(DrawFor(indices[i], epoch), from.data(), to.data());
    std::memcpy(image, to.data(), elements * sizeof(float));
  }
}

Augmentation::Draw Augmentation::DrawFor(std::uint64_t index, std::uint64_t epoch) const {
  Rng rng(Mix64(Mix64(seed_ ^ 0x696d61676573ULL) + Mix64(epoch)) + Mix64(~index));
  const std::uint64_t shifts = 2 * std::uint64_t{crop_} + 1;
  Draw draw;
  draw.down = static_cast<std::int64_t>(rng.Below(shifts)) - crop_;
  draw.right = static_cast<std::int64_t>(rng.Below(shifts)) - crop_;
  draw.flip = flip_ && rng.Below(2) == 1;
  return draw;
}

void Augmentation::Vary(const Draw& draw, const float* from, float* to) const {
  for (std::int64_t channel = 0; channel < channels_; ++channel) {
    const float black = black_[static_cast<std::size_t>(channel)];
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::int64_t row = y + draw.down;
      const bool inside = row >= 0 && row < height_;
      for (std::int64_t x = 0; x < width_; ++x) {
        const std::int64_t column = (draw.flip ? width_ - 1 - x : x) + draw.right;
        const bool here = inside && column >= 0 && column < width_;
        *to++ = here ? from[row * width_ + column] : black;
      }
    }
    from += height_ * width_;
  }
}

}  // namespace tactus::data
