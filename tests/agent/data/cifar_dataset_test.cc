#include "agent/data/cifar_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <vector>

#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;

using CifarSamples = Samples<float, std::int64_t>;

constexpr std::size_t kElements = 3 * 32 * 32;

// The slow twin: the formula of the contract, pixel by pixel.
std::vector<float> Standardise(const std::uint8_t* pixels) {
  constexpr std::array<float, 3> kMean = {0.4914f, 0.4822f, 0.4465f};
  constexpr std::array<float, 3> kDeviation = {0.2470f, 0.2435f, 0.2616f};
  std::vector<float> values;
  for (std::size_t p = 0; p < kElements; ++p) {
    const std::size_t channel = p / 1024;
    const float scaled = static_cast<float>(pixels[p]) / 255.0f;
    values.push_back((scaled - kMean[channel]) / kDeviation[channel]);
  }
  return values;
}

CifarSamples ReadCifar(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
  return ReadSamples<float, std::int64_t>(dataset, indices);
}

Split MustOpen(const std::string& path, double validation_fraction) {
  absl::StatusOr<Split> split = OpenCifar(path, validation_fraction);
  EXPECT_TRUE(split.ok()) << split.status();
  return split.ok() ? *std::move(split) : Split{};
}

TEST(CifarDatasetTest, PixelsAreStandardisedPerChannel) {
  const ScratchFolder folder;
  const Bytes bytes = CifarRecords({3, 9});

  const Split split = MustOpen(folder.Write("one.bin", bytes), 0);

  EXPECT_EQ(split.train->inputs().front(),
            (TensorSpec{.type = ElementType::kFloat32, .shape = {3, 32, 32}}));
  EXPECT_EQ(split.train->targets(), (TensorSpec{.type = ElementType::kInt64, .shape = {}}));
  const CifarSamples second = ReadCifar(*split.train, {1});
  EXPECT_EQ(second.inputs, Standardise(bytes.data() + 3073 + 1));
  EXPECT_THAT(second.targets, ElementsAre(9));
}

// Expected: float32 arithmetic done outside this program.
TEST(CifarDatasetTest, ValuesAreThoseOfTheUsualLoader) {
  const ScratchFolder folder;
  Bytes bytes(3073, 0);
  bytes[1] = 255;
  bytes[1 + 1024] = 128;

  const Split split = MustOpen(folder.Write("one.bin", bytes), 0);

  const CifarSamples sample = ReadCifar(*split.train, {0});
  EXPECT_EQ(sample.inputs[0], 2.05910945f);       // (1 - 0.4914) / 0.2470
  EXPECT_EQ(sample.inputs[1024], 0.0811532587f);  // (128 / 255 - 0.4822) / 0.2435
  EXPECT_EQ(sample.inputs[2048], -1.70680439f);   // -0.4465 / 0.2616
}

TEST(CifarDatasetTest, FolderJoinsItsBatchesByNameAndValidatesOnTheTestBatch) {
  const ScratchFolder folder;
  folder.Write("data_batch_2.bin", CifarRecords({4, 5, 6}));
  folder.Write("data_batch_1.bin", CifarRecords({1, 2}));
  folder.Write("test_batch.bin", CifarRecords({7}));
  folder.Write("batches.meta.txt", "airplane\n");

  const Split split = MustOpen(folder.path(), 0.9);

  EXPECT_THAT(ReadCifar(*split.train, {0, 1, 2, 3, 4}).targets, ElementsAre(1, 2, 4, 5, 6));
  ASSERT_NE(split.validation, nullptr);
  EXPECT_THAT(ReadCifar(*split.validation, {0}).targets, ElementsAre(7));
  EXPECT_EQ(split.validation->size(), 1U);
}

TEST(CifarDatasetTest, FolderWithoutTestBatchIsSplitByTheFraction) {
  const ScratchFolder folder;
  folder.Write("data_batch_1.bin", CifarRecords({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));

  const Split split = MustOpen(folder.path(), 0.3);

  EXPECT_EQ(split.train->size(), 7U);
  ASSERT_NE(split.validation, nullptr);
  EXPECT_THAT(ReadCifar(*split.validation, {2, 0}).targets, ElementsAre(9, 7));
}

TEST(CifarDatasetTest, FileIsSplitByTheFraction) {
  const ScratchFolder folder;
  const std::string path = folder.Write("x.bin", CifarRecords({0, 1, 2, 3}));

  EXPECT_EQ(MustOpen(path, 0.2).validation, nullptr);
  EXPECT_EQ(MustOpen(path, 0.25).validation->size(), 1U);
}

TEST(CifarDatasetTest, EveryIndexReadsItsOwnRecord) {
  const ScratchFolder folder;
  const Bytes first = CifarRecords({0, 1, 2});
  const Bytes second = CifarRecords({3, 4});
  folder.Write("data_batch_1.bin", first);
  folder.Write("data_batch_2.bin", second);

  const Split split = MustOpen(folder.path(), 0);

  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::uint8_t* record = i < 3 ? first.data() + i * 3073 : second.data() + (i - 3) * 3073;
    EXPECT_EQ(ReadCifar(*split.train, {i}).inputs, Standardise(record + 1));
  }
}

TEST(CifarDatasetTest, LabelAboveNineIsRefusedWithItsRecord) {
  const ScratchFolder folder;
  const std::string path = folder.Write("x.bin", CifarRecords({9, 0, 17, 20}));

  const absl::Status status = OpenCifar(path, 0).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "'" + path + "' has label 17 in record 2 (counted from 0), not 0 to 9");
}

TEST(CifarDatasetTest, PartOfARecordIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.Write("data_batch_1.bin", Bytes(30001, 0));

  EXPECT_EQ(
      OpenCifar(folder.path(), 0).status().message(),
      "'" + path +
          "' has 30001 bytes, not a multiple of 3073 (1 label and 3072 pixel bytes a record)");
}

TEST(CifarDatasetTest, EmptyFileIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.Write("x.bin", "");

  EXPECT_EQ(OpenCifar(path, 0).status().message(), "'" + path + "' is empty");
}

TEST(CifarDatasetTest, FolderWithoutBatchesIsNotFound) {
  const ScratchFolder folder;
  folder.Write("test_batch.bin", CifarRecords({1}));

  const absl::Status status = OpenCifar(folder.path(), 0).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "folder '" + folder.path() + "' has no data_batch_*.bin");
}

TEST(CifarDatasetTest, FolderInPlaceOfABatchIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.MakeFolder("data_batch_1.bin");

  EXPECT_EQ(OpenCifar(folder.path(), 0).status().message(),
            "'" + path + "' is a folder, not a file");
}

TEST(CifarDatasetTest, DamagedTestBatchIsRefusedNotIgnored) {
  const ScratchFolder folder;
  folder.Write("data_batch_1.bin", CifarRecords({1}));
  const std::string path = folder.Write("test_batch.bin", "");

  EXPECT_EQ(OpenCifar(folder.path(), 0).status().message(), "'" + path + "' is empty");
}

TEST(CifarDatasetTest, ReadsRealImages) {
  const std::optional<std::string> real = RealDataFolder();
  if (!real) GTEST_SKIP() << "no folder of real data; name one in TACTUS_SHARED_DATA";
  std::ifstream file(*real + "/cifar10/data_batch_2.bin", std::ios::binary);
  std::vector<char> record(3073);
  file.seekg(4321 * 3073);
  file.read(record.data(), 3073);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(record.data());

  const Split split = MustOpen(*real + "/cifar10", 0.1);

  EXPECT_EQ(split.train->size(), 20'000U);
  EXPECT_EQ(split.validation->size(), 5'000U);
  const CifarSamples sample = ReadCifar(*split.train, {10'000 + 4321});
  EXPECT_THAT(sample.targets, ElementsAre(bytes[0]));
  EXPECT_EQ(sample.inputs, Standardise(bytes + 1));
}

}  // namespace
}  // namespace tactus::data
