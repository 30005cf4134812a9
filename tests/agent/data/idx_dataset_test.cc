#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "agent/data/gzip.h"
#include "agent/data/pair_dataset.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two images of 2 x 3 bytes and their labels.
const Bytes kImages = IdxFile(
    {.type = 0x08, .shape = {2, 2, 3}, .elements = {0, 51, 102, 153, 204, 255, 5, 4, 3, 2, 1, 0}});
const Bytes kLabels = IdxFile({.type = 0x08, .shape = {2}, .elements = {7, 200}});

Bytes BigEndianFloats(const std::vector<float>& values) {
  Bytes bytes;
  for (const float value : values) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    for (const int shift : {24, 16, 8, 0})
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  return bytes;
}

// Writes the two files and opens them.
absl::StatusOr<Split> OpenPair(const ScratchFolder& folder, const Bytes& inputs,
                               const Bytes& targets) {
  return OpenIdx(
      {.inputs = folder.Write("inputs", inputs), .targets = folder.Write("targets", targets)}, 0);
}

std::string MessageOf(const absl::StatusOr<Split>& split) {
  return split.ok() ? "ok" : std::string(split.status().message());
}

TEST(IdxDatasetTest, ImagesGetAChannelAndAreScaledAndLabelsAreIntegers) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = OpenPair(folder, kImages, kLabels);

  ASSERT_TRUE(split.ok()) << split.status();
  const Dataset& train = *split->train;
  EXPECT_EQ(train.inputs().front(),
            (TensorSpec{.type = ElementType::kFloat32, .shape = {1, 2, 3}}));
  EXPECT_EQ(train.targets(), (TensorSpec{.type = ElementType::kInt64, .shape = {}}));
  const auto samples = ReadSamples<float, std::int64_t>(train, {1, 0});
  EXPECT_THAT(samples.inputs,
              ElementsAre(5 / 255.f, 4 / 255.f, 3 / 255.f, 2 / 255.f, 1 / 255.f, 0.f, 0.f,
                          51 / 255.f, 102 / 255.f, 153 / 255.f, 204 / 255.f, 1.f));
  EXPECT_THAT(samples.targets, ElementsAre(200, 7));
}

TEST(IdxDatasetTest, CompressedFilesGiveTheSameSamples) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = OpenPair(folder, Gzip(kImages), Gzip(kLabels));

  ASSERT_TRUE(split.ok()) << split.status();
  const auto samples = ReadSamples<float, std::int64_t>(*split->train, {0});
  EXPECT_THAT(samples.inputs,
              ElementsAre(0.f, 51 / 255.f, 102 / 255.f, 153 / 255.f, 204 / 255.f, 1.f));
  EXPECT_THAT(samples.targets, ElementsAre(7));
}

TEST(IdxDatasetTest, FloatsAreBigEndian) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = OpenPair(
      folder,
      IdxFile({.type = 0x0d, .shape = {2, 2}, .elements = BigEndianFloats({1.5f, -2.f, 3.f, 0.f})}),
      IdxFile({.type = 0x0d, .shape = {2, 1}, .elements = BigEndianFloats({0.25f, -8.f})}));

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->inputs().front(),
            (TensorSpec{.type = ElementType::kFloat32, .shape = {2}}));
  EXPECT_EQ(split->train->targets(), (TensorSpec{.type = ElementType::kFloat32, .shape = {1}}));
  const auto samples = ReadSamples<float, float>(*split->train, {0, 1});
  EXPECT_THAT(samples.inputs, ElementsAre(1.5f, -2.f, 3.f, 0.f));
  EXPECT_THAT(samples.targets, ElementsAre(0.25f, -8.f));
}

TEST(IdxDatasetTest, ColourImagesKeepTheirChannels) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split =
      OpenPair(folder, IdxFile({.shape = {2, 3, 1, 1}, .elements = Bytes(6, 1)}), kLabels);

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(split->train->inputs().front().shape, ElementsAre(3, 1, 1));
}

TEST(IdxDatasetTest, CountsMustAgree) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split =
      OpenPair(folder, kImages, IdxFile({.shape = {3}, .elements = {1, 2, 3}}));

  EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(split), "targets: '" + folder.PathOf("targets") +
                                  "' has 3 samples, but the inputs '" + folder.PathOf("inputs") +
                                  "' have 2");
}

struct BadIdx {
  std::string name;
  Bytes bytes;
  std::string message;  // after the path
};

class BadIdxTest : public ::testing::TestWithParam<BadIdx> {};

TEST_P(BadIdxTest, IsRefusedWithItsReason) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = OpenPair(folder, GetParam().bytes, kLabels);

  EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(split), "inputs: '" + folder.PathOf("inputs") + "' " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadIdxTest,
    ::testing::Values(
        BadIdx{"Empty", {}, "is empty"},
        BadIdx{"WrongMagic", ToBytes("\x89PNG\r\n"),
               "is not an IDX file: it begins with 0x89504e47, not 0x000008 or 0x00000d"},
        BadIdx{"WrongType", IdxFile({.type = 0x0b, .shape = {1}, .elements = {1, 2}}),
               "has elements of type 0x0b; 0x08 (unsigned byte) and 0x0d (float32) are read"},
        BadIdx{"NoDimensions", IdxFile({.elements = {1}}), "has 0 dimensions; 1 to 8 are read"},
        BadIdx{"ManyDimensions", Bytes{0, 0, 8, 200}, "has 200 dimensions; 1 to 8 are read"},
        BadIdx{"CutMagic", Bytes{0, 0, 8}, "is cut short: its header takes 4 bytes, 3 are there"},
        BadIdx{"CutHeader", Bytes{0, 0, 8, 2, 0, 0},
               "is cut short: its header takes 12 bytes, 6 are there"},
        BadIdx{"CutElements", IdxFile({.shape = {2, 2}, .elements = {1, 2, 3}}),
               "is cut short: shape [2, 2] takes 4 bytes after the header, 3 are there"},
        BadIdx{"TrailingBytes", IdxFile({.shape = {2}, .elements = {1, 2, 3}}),
               "has 1 bytes after the end of its array of shape [2]"},
        BadIdx{"NoSamples", IdxFile({.shape = {0, 4}}), "has no samples: its shape is [0, 4]"},
        BadIdx{"EmptySamples", IdxFile({.shape = {4, 0}}),
               "has a dimension of 0: its shape is [4, 0]"},
        BadIdx{"ShapeBeyond64Bits",
               IdxFile({.shape = {0xffffffff, 0xffffffff, 0xffffffff}, .elements = {1}}),
               "is cut short: shape [4294967295, 4294967295, 4294967295] takes more than 2^64 "
               "bytes after the header, 1 are there"}),
    [](const auto& test) { return test.param.name; });

TEST(IdxDatasetTest, ErrorNamesTheFileOfThePair) {
  const ScratchFolder folder;

  EXPECT_THAT(MessageOf(OpenPair(folder, kImages, {})), HasSubstr("targets: '"));
}

TEST(IdxDatasetTest, DamagedCompressionIsRefused) {
  const ScratchFolder folder;
  Bytes damaged = Gzip(kImages);
  damaged[damaged.size() / 2] ^= 0x55;

  EXPECT_THAT(MessageOf(OpenPair(folder, damaged, kLabels)), HasSubstr("gzip data"));
}

TEST(InflateTest, JoinsMembersAsGzipDoes) {
  Bytes two = Gzip(ToBytes("first "));
  const Bytes second = Gzip(ToBytes("second"));
  two.insert(two.end(), second.begin(), second.end());

  const absl::StatusOr<Bytes> content = Inflate(two, 100);

  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(*content, ToBytes("first second"));
}

TEST(InflateTest, ContentMayHaveItsBoundButNotAByteMore) {
  const Bytes bytes = Gzip(Bytes(100'000, 'x'));

  const absl::StatusOr<Bytes> content = Inflate(bytes, 100'000);
  const absl::Status larger = Inflate(bytes, 99'999).status();

  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(*content, Bytes(100'000, 'x'));
  EXPECT_EQ(larger.message(),
            "is larger than 99999 bytes when decompressed: store it without compression");
}

TEST(InflateTest, ContentOfAnySizeComesBack) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65535},
                                 std::size_t{65536}, std::size_t{65537}, std::size_t{1'000'003}}) {
    Bytes content(size);
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<std::uint8_t>(i * i >> 3);

    const absl::StatusOr<Bytes> inflated = Inflate(Gzip(content), kInflatedBytesMax);

    ASSERT_TRUE(inflated.ok()) << inflated.status();
    EXPECT_EQ(*inflated, content);
  }
}

TEST(InflateTest, BytesAfterTheEndAreRefused) {
  Bytes bytes = Gzip(ToBytes("text"));
  bytes.push_back('!');

  EXPECT_EQ(Inflate(bytes, 100).status().message(), "has 1 bytes after the end of its gzip data");
}

}  // namespace
}  // namespace tactus::data
