// NumPy files as several inputs of a model, each as the type that the model wants.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "agent/data/pair_dataset.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Bytes kLabelsOfTwo =
    NpyFile({.descr = "<i8", .shape = "(2,)", .elements = ElementBytes<std::int64_t>({1, 0})});

class SeveralInputsTest : public testing::Test {
 protected:
  absl::StatusOr<Split> Open(const std::vector<NpyParts>& inputs,
                             std::vector<std::string> types = {}) {
    DataOptions::FilePair files{.inputs = "",
                                .targets = folder_.Write("y.npy", kLabelsOfTwo),
                                .input_types = std::move(types)};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string path = folder_.Write("x" + std::to_string(i) + ".npy", NpyFile(inputs[i]));
      if (i == 0) {
        files.inputs = path;
      } else {
        files.more_inputs.push_back(path);
      }
    }
    return OpenNumpy(files, 0);
  }

  // The one input of two samples, read in order.
  template <typename T>
  std::vector<T> Values(const NpyParts& input, const std::string& type) {
    std::vector<std::string> types;
    if (!type.empty()) types = {type};
    const absl::StatusOr<Split> split = Open({input}, types);
    EXPECT_TRUE(split.ok()) << split.status();
    if (!split.ok()) return {};
    EXPECT_EQ(SizeOf(split->train->inputs().front().type), sizeof(T));
    return ReadSamples<T, std::int64_t>(*split->train, {0, 1}).inputs;
  }

  std::string Error(const std::vector<NpyParts>& inputs, std::vector<std::string> types = {}) {
    const absl::StatusOr<Split> split = Open(inputs, std::move(types));
    return split.ok() ? "ok" : std::string(split.status().message());
  }

  const ScratchFolder folder_;
};

const NpyParts kWords{
    .descr = "<i2", .shape = "(2, 3)", .elements = ElementBytes<std::int16_t>({1, 2, 3, -4, 5, 6})};
const NpyParts kMask{.descr = "|b1", .shape = "(2, 3)", .elements = {1, 0, 1, 0, 0, 1}};
const NpyParts kPixels{.descr = "|u1", .shape = "(2, 1, 2)", .elements = {0, 255, 51, 7}};

TEST_F(SeveralInputsTest, EachHasAPlaceOfItsOwn) {
  const absl::StatusOr<Split> split = Open({kWords, kMask});

  ASSERT_TRUE(split.ok()) << split.status();
  const Dataset& data = *split->train;
  ASSERT_THAT(data.inputs(), ElementsAre(TensorSpec{.type = ElementType::kInt64, .shape = {3}},
                                         TensorSpec{.type = ElementType::kBool, .shape = {3}}));
  const TensorPlaces places = PlacesOf(data.inputs(), 2);
  EXPECT_THAT(places.offsets, ElementsAre(0, 64));  // 48 bytes, and the next multiple of 64
  EXPECT_EQ(places.bytes, 64 + 6);
  std::vector<std::byte> inputs(places.bytes);
  std::vector<std::int64_t> targets(2);
  data.Read(std::vector<std::uint64_t>{1, 0}, inputs, std::as_writable_bytes(std::span(targets)));
  std::vector<std::int64_t> words(6);
  std::memcpy(words.data(), inputs.data(), 48);
  EXPECT_THAT(words, ElementsAre(-4, 5, 6, 1, 2, 3));
  std::vector<std::uint8_t> mask(6);
  std::memcpy(mask.data(), inputs.data() + 64, 6);
  EXPECT_THAT(mask, ElementsAre(0, 0, 1, 1, 0, 1));
  EXPECT_THAT(targets, ElementsAre(0, 1));
}

TEST_F(SeveralInputsTest, ATypeIsWhatTheModelWants) {
  EXPECT_THAT(Values<float>(kPixels, ""), ElementsAre(0.F, 1.F, 51 / 255.F, 7 / 255.F));
  EXPECT_THAT(Values<float>(kPixels, "float32"), ElementsAre(0.F, 255.F, 51.F, 7.F));
  EXPECT_THAT(Values<std::uint8_t>(kPixels, "uint8"), ElementsAre(0, 255, 51, 7));
  EXPECT_THAT(Values<std::int64_t>(kPixels, "int64"), ElementsAre(0, 255, 51, 7));
  EXPECT_THAT(Values<float>(kWords, "float32"), ElementsAre(1.F, 2.F, 3.F, -4.F, 5.F, 6.F));
  EXPECT_THAT(Values<std::int64_t>(kMask, "int64"), ElementsAre(1, 0, 1, 0, 0, 1));
  const NpyParts tokens{.descr = "|u1", .shape = "(2,)", .elements = {255, 51}};
  EXPECT_THAT(Values<float>(tokens, "scaled"), ElementsAre(1.F, 51 / 255.F));
}

// Against IEEE 754's binary16: 1, -2, the least normal, the least at all, the greatest, infinity.
TEST_F(SeveralInputsTest, HalvesAreTheNumbersTheyStandFor) {
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x0400, 0x0001, 0x7bff, 0x7c00};

  const std::vector<float> values = Values<float>(
      {.descr = "<f2", .shape = "(2, 3)", .elements = ElementBytes<std::uint16_t>(halves)}, "");

  EXPECT_THAT(values, ElementsAre(1.F, -2.F, 0x1p-14F, 0x1p-24F, 65504.F,
                                  std::numeric_limits<float>::infinity()));
  const std::vector<float> nan = Values<float>(
      {.descr = "<f2", .shape = "(2,)", .elements = ElementBytes<std::uint16_t>({0x7e00, 0x8000})},
      "");
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_TRUE(nan[1] == 0 && std::signbit(nan[1]));
}

TEST_F(SeveralInputsTest, WhatDoesNotFitIsSaid) {
  const NpyParts floats{
      .descr = "<f4", .shape = "(2,)", .elements = ElementBytes<float>({1.5F, 2.F})};
  const NpyParts three{.descr = "|u1", .shape = "(3,)", .elements = {1, 2, 3}};

  EXPECT_THAT(Error({floats}, {"int64"}),
              HasSubstr("input_types[0]: 'int64' is for files of integers"));
  EXPECT_THAT(Error({kWords}, {"uint8"}), HasSubstr("'uint8' is for files of uint8"));
  EXPECT_THAT(Error({kWords, kMask}, {"int64", "mask"}),
              HasSubstr("input_types[1]: 'mask' is unknown; allowed: float32, scaled, int64"));
  EXPECT_THAT(Error({kWords, kMask}, {"int64"}),
              HasSubstr("input_types: 1 for 2 inputs; allowed: as many"));
  EXPECT_THAT(Error({kWords, three}),
              AllOf(HasSubstr("more_inputs[0]: "), HasSubstr("has 3 samples, but the inputs")));
  EXPECT_THAT(Error({three}),
              AllOf(HasSubstr("targets: "), HasSubstr("has 2 samples, but the inputs")));
  EXPECT_THAT(Error({kWords, {.descr = "<c8", .shape = "(2,)", .elements = Bytes(16)}}),
              HasSubstr("more_inputs[0]: "));
}

TEST_F(SeveralInputsTest, IdxHasOne) {
  const DataOptions::FilePair files{.inputs = "x", .targets = "y", .more_inputs = {"z"}};

  const absl::StatusOr<Split> split = OpenIdx(files, 0);

  EXPECT_THAT(std::string(split.status().message()),
              HasSubstr("more_inputs: IDX files are one input"));
}

}  // namespace
}  // namespace tactus::data
