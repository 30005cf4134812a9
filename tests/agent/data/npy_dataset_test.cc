#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "agent/data/npy_header.h"
#include "agent/data/pair_dataset.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kRead =
    "; '<f2', '<f4', '<f8', '|i1', '|u1', '<i2', '<u2', '<i4', '<i8' and '|b1' are read";

const Bytes kTargets = NpyFile(
    {.descr = "<i8", .shape = "(2,)", .elements = ElementBytes<std::int64_t>({-3, 1LL << 40})});

absl::StatusOr<Split> OpenPair(const ScratchFolder& folder, const Bytes& inputs,
                               const Bytes& targets) {
  return OpenNumpy(
      {.inputs = folder.Write("x.npy", inputs), .targets = folder.Write("y.npy", targets)}, 0);
}

std::string MessageOf(const absl::StatusOr<Split>& split) {
  return split.ok() ? "ok" : std::string(split.status().message());
}

// Opens `inputs`, two samples, beside targets that are well.
std::shared_ptr<const Dataset> MustOpenInputs(const ScratchFolder& folder, const NpyParts& inputs) {
  absl::StatusOr<Split> split = OpenPair(folder, NpyFile(inputs), kTargets);
  EXPECT_TRUE(split.ok()) << split.status();
  return split.ok() ? split->train : nullptr;
}

TEST(NpyDatasetTest, Float32AndInt64AreReadAsTheyAre) {
  const ScratchFolder folder;

  const auto train =
      MustOpenInputs(folder, {.descr = "<f4",
                              .shape = "(2, 3)",
                              .elements = ElementBytes<float>({1.f, 2.f, 3.f, 4.f, 5.f, 6.f})});

  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train->inputs().front(), (TensorSpec{.type = ElementType::kFloat32, .shape = {3}}));
  EXPECT_EQ(train->targets(), (TensorSpec{.type = ElementType::kInt64, .shape = {}}));
  const auto samples = ReadSamples<float, std::int64_t>(*train, {1, 0});
  EXPECT_THAT(samples.inputs, ElementsAre(4.f, 5.f, 6.f, 1.f, 2.f, 3.f));
  EXPECT_THAT(samples.targets, ElementsAre(1LL << 40, -3));
}

TEST(NpyDatasetTest, Float64IsRoundedToFloat32) {
  const ScratchFolder folder;

  const auto train = MustOpenInputs(
      folder, {.descr = "<f8", .shape = "(2,)", .elements = ElementBytes<double>({0.1, -1e300})});

  ASSERT_NE(train, nullptr);
  const auto samples = ReadSamples<float, std::int64_t>(*train, {0, 1});
  EXPECT_THAT(samples.inputs, ElementsAre(0.1f, -std::numeric_limits<float>::infinity()));
}

TEST(NpyDatasetTest, IntegersBecomeInt64) {
  const ScratchFolder folder;

  const auto train = MustOpenInputs(
      folder,
      {.descr = "<i4", .shape = "(2, 1)", .elements = ElementBytes<std::int32_t>({-7, 70'000})});

  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train->inputs().front(), (TensorSpec{.type = ElementType::kInt64, .shape = {1}}));
  const auto samples = ReadSamples<std::int64_t, std::int64_t>(*train, {0, 1});
  EXPECT_THAT(samples.inputs, ElementsAre(-7, 70'000));
}

TEST(NpyDatasetTest, BytesOfImagesAreScaledAndOtherBytesAreIntegers) {
  const ScratchFolder folder;

  const auto images =
      MustOpenInputs(folder, {.descr = "|u1", .shape = "(2, 1, 2)", .elements = {0, 255, 51, 7}});
  const auto tokens =
      MustOpenInputs(folder, {.descr = "|u1", .shape = "(2, 2)", .elements = {0, 255, 51, 7}});

  ASSERT_NE(images, nullptr);
  EXPECT_EQ(images->inputs().front(), (TensorSpec{.type = ElementType::kFloat32, .shape = {1, 2}}));
  EXPECT_THAT((ReadSamples<float, std::int64_t>(*images, {0, 1}).inputs),
              ElementsAre(0.f, 1.f, 51 / 255.f, 7 / 255.f));
  ASSERT_NE(tokens, nullptr);
  EXPECT_EQ(tokens->inputs().front(), (TensorSpec{.type = ElementType::kInt64, .shape = {2}}));
  EXPECT_THAT((ReadSamples<std::int64_t, std::int64_t>(*tokens, {0, 1}).inputs),
              ElementsAre(0, 255, 51, 7));
}

TEST(NpyDatasetTest, BytesOfTargetsAreIntegersWhateverTheirShape) {
  const ScratchFolder folder;
  const Bytes masks = NpyFile({.descr = "|u1", .shape = "(2, 1, 2)", .elements = {1, 2, 3, 4}});

  const absl::StatusOr<Split> split = OpenPair(folder, kTargets, masks);

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->targets(), (TensorSpec{.type = ElementType::kInt64, .shape = {1, 2}}));
}

TEST(NpyDatasetTest, FirstDimensionsMustAgree) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split =
      OpenPair(folder, NpyFile({.descr = "|u1", .shape = "(3,)", .elements = {1, 2, 3}}), kTargets);

  EXPECT_EQ(MessageOf(split), "targets: '" + folder.PathOf("y.npy") +
                                  "' has 2 samples, but the inputs '" + folder.PathOf("x.npy") +
                                  "' have 3");
}

struct BadNpy {
  std::string name;
  Bytes bytes;
  std::string message;  // after the path
};

class BadNpyTest : public ::testing::TestWithParam<BadNpy> {};

TEST_P(BadNpyTest, IsRefusedWithItsReason) {
  const ScratchFolder folder;

  const absl::StatusOr<Split> split = OpenPair(folder, GetParam().bytes, kTargets);

  EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(split), "inputs: '" + folder.PathOf("x.npy") + "' " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadNpyTest,
    ::testing::Values(
        BadNpy{"Empty", {}, "is empty"},
        BadNpy{"WrongMagic", ToBytes("PK\x03\x04 an archive"),
               "is not a NumPy file: it does not begin with \\x93NUMPY"},
        BadNpy{"FutureVersion", NpyFile({.shape = "(2,)", .version = 4}),
               "has NumPy format version 4; 1, 2 and 3 are read"},
        BadNpy{"CutMagic", Bytes{0x93, 'N'},
               "is cut short: its header takes 10 bytes, 2 are there"},
        BadNpy{"CutHeader", Bytes{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0, '{'},
               "is cut short: its header takes 128 bytes, 11 are there"},
        BadNpy{"CutElements", NpyFile({.shape = "(2, 2)", .elements = Bytes(15)}),
               "is cut short: shape [2, 2] takes 16 bytes after the header, 15 are there"},
        BadNpy{"TrailingBytes", NpyFile({.shape = "(2,)", .elements = Bytes(12)}),
               "has 4 bytes after the end of its array of shape [2]"},
        BadNpy{"FortranOrder",
               NpyFile({.shape = "(2, 2)", .elements = Bytes(16), .fortran_order = "True"}),
               "is in Fortran order; save numpy.ascontiguousarray of it"},
        BadNpy{"BigEndian", NpyFile({.descr = ">f4", .shape = "(2,)", .elements = Bytes(8)}),
               "has elements of type '>f4'" + kRead},
        BadNpy{"Complex", NpyFile({.descr = "<c8", .shape = "(2,)", .elements = Bytes(16)}),
               "has elements of type '<c8'" + kRead},
        BadNpy{
            "Records",
            NpyFileWithText(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                            Bytes(8)),
            "has records of several fields, not one array of numbers"},
        BadNpy{"SingleValue", NpyFile({.shape = "()", .elements = Bytes(4)}),
               "is a single value; its first dimension counts the samples"},
        BadNpy{"NoSamples", NpyFile({.shape = "(0, 3)"}), "has no samples: its shape is [0, 3]"},
        BadNpy{"EmptySamples", NpyFile({.shape = "(3, 0)"}),
               "has a dimension of 0: its shape is [3, 0]"}),
    [](const auto& test) { return test.param.name; });

TEST(NpyHeaderTest, ReadsAllThreeVersions) {
  for (const std::uint8_t version : {1, 2, 3}) {
    const Bytes file =
        NpyFile({.descr = "<f8", .shape = "(4, 5)", .elements = Bytes(160), .version = version});

    const absl::StatusOr<NpyHeader> header = ParseNpyHeader(file);

    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->descr, "<f8");
    EXPECT_THAT(header->shape, ElementsAre(4, 5));
    EXPECT_EQ(header->bytes, file.size() - 160);
  }
}

TEST(NpyHeaderTest, KeysMayComeInAnyOrderAndFormPythonAllows) {
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(NpyFileWithText(
      1, "{ \"shape\":( 3L , 2L ),'fortran_order' :True , 'descr': \"|u1\"}\n", {}));

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->descr, "|u1");
  EXPECT_TRUE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(3, 2));
}

TEST(NpyHeaderTest, ShapeOfASingleValueIsEmpty) {
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(NpyFile({.shape = "()"}));

  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->shape, IsEmpty());
}

class BadHeaderTextTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadHeaderTextTest, IsRefused) {
  const absl::Status status = ParseNpyHeader(NpyFileWithText(1, GetParam(), {})).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not the dictionary NumPy writes"));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadHeaderTextTest,
    ::testing::Values("", "{", "{}", "[]", "nonsense", "{'descr': '<f4'}",
                      "{'descr': '<f4', 'fortran_order': False}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} more",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
                      "{'descr': '<f4', 'fortran_order': Fals, 'shape': (2,)}",
                      "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
                      "{'descr': <f4, 'fortran_order': False, 'shape': (2,)}",
                      "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
                      "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}",
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}"));

}  // namespace
}  // namespace tactus::data
