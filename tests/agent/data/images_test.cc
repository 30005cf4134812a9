// Images on a common scale, and how training varies them.

#include "agent/data/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/data/pair_dataset.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Image = std::vector<float>;

// Two images of two channels, 1 x 2, and one for validation.
Split Colours(const ScratchFolder& folder) {
  const Bytes inputs =
      NpyFile({.descr = "<f4",
               .shape = "(3, 2, 1, 2)",
               .elements = ElementBytes<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  const Bytes targets =
      NpyFile({.descr = "<i8", .shape = "(3,)", .elements = ElementBytes<std::int64_t>({0, 1, 0})});
  absl::StatusOr<Split> split = OpenNumpy(
      {.inputs = folder.Write("x.npy", inputs), .targets = folder.Write("y.npy", targets)}, 0.34);
  EXPECT_TRUE(split.ok()) << split.status();
  return *std::move(split);
}

std::string RefusalOf(const Split& split, const ImageOptions& options) {
  const absl::StatusOr<Split> normalised = Normalised(split, options);
  return normalised.ok() ? "ok" : std::string(normalised.status().message());
}

TEST(ImagesTest, EachChannelComesToItsScaleInBothParts) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split =
      Normalised(Colours(folder), {.mean = {1, 2}, .deviation = {0.5, 4}});

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT((ReadSamples<float, std::int64_t>(*split->train, {1, 0}).inputs),
              ElementsAre(8, 10, 1.25F, 1.5F, 0, 2, 0.25F, 0.5F));
  EXPECT_THAT((ReadSamples<float, std::int64_t>(*split->validation, {0}).inputs),
              ElementsAre(16, 18, 2.25F, 2.5F));
  EXPECT_THAT(split->black, ElementsAre(-2, -0.5F));
}

TEST(ImagesTest, OneNumberIsForAllChannels) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = Normalised(Colours(folder), {.deviation = {2}});

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT((ReadSamples<float, std::int64_t>(*split->train, {0}).inputs),
              ElementsAre(0.5F, 1, 1.5F, 2));
  EXPECT_THAT(split->black, ElementsAre(0, 0));
}

TEST(ImagesTest, WhatDoesNotFitIsSaid) {
  const ScratchFolder folder;
  const Split colours = Colours(folder);
  Split standardised = colours;
  standardised.black = {-1, -1};

  EXPECT_THAT(RefusalOf(colours, {.mean = {1, 2, 3}}),
              HasSubstr("mean: 3 numbers for images of 2 channels; allowed: one, or 2"));
  EXPECT_THAT(RefusalOf(colours, {.deviation = {1, 0}}), HasSubstr("deviation: 0"));
  EXPECT_THAT(RefusalOf(colours, {.crop = 1}),
              HasSubstr("crop: 1 of images of 1 x 2; allowed: below both"));
  EXPECT_THAT(RefusalOf(standardised, {.mean = {1}}), HasSubstr("mean: these images are"));
  EXPECT_EQ(RefusalOf(standardised, {.flip = true}), "ok");

  const Bytes table =
      NpyFile({.descr = "<f4", .shape = "(3,)", .elements = ElementBytes<float>({1, 2, 3})});
  const std::string path = folder.Write("t.npy", table);
  const absl::StatusOr<Split> numbers = OpenNumpy({.inputs = path, .targets = path}, 0);
  ASSERT_TRUE(numbers.ok());
  EXPECT_THAT(RefusalOf(*numbers, {.flip = true}), HasSubstr("allowed: float32 images"));
}

TEST(AugmentationTest, NoneIsMadeWhereNoneIsAskedFor) {
  const ScratchFolder folder;
  const Split split = Colours(folder);

  EXPECT_FALSE(Augmentation::Of(std::nullopt, split, 1));
  EXPECT_FALSE(Augmentation::Of(ImageOptions{.mean = {1}}, split, 1));
}

// One image of 3 x 3, in which no two pixels are alike, with black at -1.
class VariedTest : public testing::Test {
 protected:
  Image Vary(const ImageOptions& options, std::uint64_t index, std::uint64_t epoch,
             std::uint64_t seed = 7) const {
    const Augmentation augmentation(options, spec_, {-1}, seed);
    Image image = image_;
    augmentation.Apply(std::vector{index}, epoch, std::as_writable_bytes(std::span(image)));
    return image;
  }

  const TensorSpec spec_{.type = ElementType::kFloat32, .shape = {3, 3}};
  const Image image_ = {1, 2, 3, 4, 5, 6, 7, 8, 9};
};

TEST_F(VariedTest, HalfOfTheImagesAreMirrored) {
  const Image mirrored = {3, 2, 1, 6, 5, 4, 9, 8, 7};
  int flips = 0;
  constexpr int kImages = 4000;

  for (std::uint64_t index = 0; index < kImages; ++index) {
    const Image image = Vary({.flip = true}, index, 0);
    ASSERT_TRUE(image == image_ || image == mirrored);
    flips += image == mirrored ? 1 : 0;
  }

  // Four standard deviations of a binomial: 4 sqrt(n / 4).
  EXPECT_NEAR(flips, kImages / 2, 4 * 31.7);
}

TEST_F(VariedTest, AllShiftsComeAlikeOftenWithBlackFromBeyondTheEdge) {
  std::map<Image, int> seen;
  constexpr int kImages = 9000;

  for (std::uint64_t index = 0; index < kImages; ++index) ++seen[Vary({.crop = 1}, index, 3)];

  ASSERT_EQ(seen.size(), 9);
  EXPECT_TRUE(seen.contains(image_));
  EXPECT_TRUE(seen.contains(Image{5, 6, -1, 8, 9, -1, -1, -1, -1}));
  EXPECT_TRUE(seen.contains(Image{-1, -1, -1, -1, 1, 2, -1, 4, 5}));
  for (const auto& [image, times] : seen) EXPECT_NEAR(times, kImages / 9, 4 * 29.8);
}

TEST_F(VariedTest, TheDrawIsOfSeedEpochAndIndexAlone) {
  const ImageOptions options{.crop = 2, .flip = true};
  std::set<Image> of_epochs;
  std::set<Image> of_seeds;
  std::set<Image> of_indices;
  for (std::uint64_t i = 0; i < 20; ++i) {
    of_epochs.insert(Vary(options, 5, i));
    of_seeds.insert(Vary(options, 5, 0, i));
    of_indices.insert(Vary(options, i, 0));
  }
  EXPECT_GT(of_epochs.size(), 5);
  EXPECT_GT(of_seeds.size(), 5);
  EXPECT_GT(of_indices.size(), 5);

  // Whatever is read with it.
  const Augmentation augmentation(options, spec_, {-1}, 7);
  Image both = image_;
  both.insert(both.end(), image_.begin(), image_.end());
  augmentation.Apply(std::vector<std::uint64_t>{9, 5}, 4, std::as_writable_bytes(std::span(both)));
  EXPECT_EQ(Image(both.begin(), both.begin() + 9), Vary(options, 9, 4));
  EXPECT_EQ(Image(both.begin() + 9, both.end()), Vary(options, 5, 4));
}

TEST_F(VariedTest, ChannelsMoveTogetherEachWithItsBlack) {
  const TensorSpec colours{.type = ElementType::kFloat32, .shape = {2, 1, 2}};
  const Augmentation augmentation({.crop = 0, .flip = true}, colours, {-1, -2}, 7);
  std::set<Image> seen;
  for (std::uint64_t index = 0; index < 50; ++index) {
    Image image = {1, 2, 3, 4};
    augmentation.Apply(std::vector{index}, 0, std::as_writable_bytes(std::span(image)));
    seen.insert(image);
  }
  EXPECT_EQ(seen, (std::set<Image>{{1, 2, 3, 4}, {2, 1, 4, 3}}));
}

}  // namespace
}  // namespace tactus::data
