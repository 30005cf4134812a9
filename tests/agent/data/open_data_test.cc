#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "agent/data/dataset.h"
#include "agent/data/split.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(TensorSpecTest, CountsElementsAndBytes) {
  const TensorSpec image = {.type = ElementType::kFloat32, .shape = {3, 32, 32}};
  const TensorSpec label = {.type = ElementType::kInt64, .shape = {}};

  EXPECT_EQ(image.ElementsPerSample(), 3072U);
  EXPECT_EQ(image.BytesPerSample(), 12288U);
  EXPECT_EQ(label.ElementsPerSample(), 1U);
  EXPECT_EQ(label.BytesPerSample(), 8U);
  EXPECT_EQ(SizeOf(ElementType::kUint8), 1U);
}

TEST(ValidationCountTest, IsTheShareRoundedDown) {
  EXPECT_EQ(ValidationCount(10, 0.1), 1U);
  EXPECT_EQ(ValidationCount(9, 0.1), 0U);
  EXPECT_EQ(ValidationCount(10, 0), 0U);
  EXPECT_EQ(ValidationCount(100, 0.29), 29U);  // 0.29 * 100 is 28.999999999999996
}

TEST(ValidationCountPropertyTest, LeavesASampleForTraining) {
  for (std::uint64_t total = 1; total <= 2000; ++total) {
    EXPECT_LT(ValidationCount(total, 0.9), total);
  }
  EXPECT_LT(ValidationCount(1ULL << 40, 0.9), 1ULL << 40);
}

TEST(OpenDataTest, OpensEverySourceUnderItsField) {
  const ScratchFolder folder;
  const std::string text = folder.Write("t.txt", std::string(1000, 'x'));
  const std::string cifar = folder.Write("c.bin", CifarRecords({1, 2}));
  const std::string idx = folder.Write("i", IdxFile({.shape = {2}, .elements = {1, 2}}));
  const std::string npy = folder.Write("n.npy", NpyFile({.shape = "(2,)", .elements = Bytes(8)}));

  EXPECT_EQ(ErrorOf({.text = text}), "ok");
  EXPECT_EQ(ErrorOf({.cifar = cifar}), "ok");
  EXPECT_EQ(ErrorOf({.idx = DataOptions::FilePair{idx, idx}}), "ok");
  EXPECT_EQ(ErrorOf({.numpy = DataOptions::FilePair{npy, npy}}), "ok");
}

TEST(OpenDataTest, ErrorsBeginWithTheField) {
  const ScratchFolder folder;
  const std::string none = folder.PathOf("none");
  const std::string idx = folder.Write("i", IdxFile({.shape = {2}, .elements = {1, 2}}));

  EXPECT_EQ(ErrorOf({.text = none}), "data.text: '" + none + "' was not found");
  EXPECT_EQ(ErrorOf({.cifar = none}), "data.cifar: '" + none + "' was not found");
  EXPECT_EQ(ErrorOf({.idx = DataOptions::FilePair{none, none}}),
            "data.idx.inputs: '" + none + "' was not found");
  EXPECT_EQ(ErrorOf({.idx = DataOptions::FilePair{idx, none}}),
            "data.idx.targets: '" + none + "' was not found");
  EXPECT_EQ(ErrorOf({.numpy = DataOptions::FilePair{none, none}}),
            "data.numpy.inputs: '" + none + "' was not found");
  EXPECT_EQ(ErrorOf({.text = ""}), "data.text: '' was not found");
}

TEST(OpenDataTest, KeepsTheCodeOfTheCause) {
  const ScratchFolder folder;
  const std::string closed = folder.Write("closed", "text");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const OrdinaryUser user;

  EXPECT_EQ(OpenData({.text = closed}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(OpenData({.cifar = closed}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(OpenData({.cifar = folder.PathOf("none")}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenData({.idx = DataOptions::FilePair{folder.path(), ""}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(OpenDataTest, MessageIsOneLineWhateverThePath) {
  EXPECT_EQ(ErrorOf({.text = "/no\nsuch"}), "data.text: '/no\\x0asuch' was not found");
}

TEST(OpenDataTest, NeedsExactlyOneSource) {
  EXPECT_EQ(ErrorOf({}), "data: exactly one of text, cifar, idx and numpy is needed, 0 are set");
  EXPECT_EQ(ErrorOf({.text = "a", .cifar = "b"}),
            "data: exactly one of text, cifar, idx and numpy is needed, 2 are set");
}

TEST(OpenDataTest, RefusesOptionsOutOfRange) {
  for (const double fraction : {-0.1, 0.91, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(ErrorOf({.text = "x", .validation_fraction = fraction}),
                StartsWith("data.validation_fraction: "));
  }
  EXPECT_EQ(ErrorOf({.text = "x", .context = 0}), "data.context: 0 is not 1 to 1048576");
  EXPECT_EQ(ErrorOf({.text = "x", .context = 1048577}),
            "data.context: 1048577 is not 1 to 1048576");
}

TEST(OpenDataTest, LastSamplesAreForValidation) {
  const ScratchFolder folder;
  const std::string npy = folder.Write(
      "n.npy", NpyFile({.descr = "|u1", .shape = "(5,)", .elements = {10, 11, 12, 13, 14}}));

  const absl::StatusOr<Split> split =
      OpenData({.numpy = DataOptions::FilePair{npy, npy}, .validation_fraction = 0.4});

  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->size(), 3U);
  ASSERT_NE(split->validation, nullptr);
  EXPECT_EQ(split->validation->size(), 2U);
  EXPECT_THAT((ReadSamples<std::int64_t, std::int64_t>(*split->train, {2, 0, 1}).inputs),
              ElementsAre(12, 10, 11));
  EXPECT_THAT((ReadSamples<std::int64_t, std::int64_t>(*split->validation, {1, 0}).targets),
              ElementsAre(14, 13));
}

TEST(OpenDataTest, PartsOutliveTheSplit) {
  const ScratchFolder folder;
  const std::string path = folder.Write("c.bin", CifarRecords({0, 1, 2, 3}));
  std::shared_ptr<const Dataset> validation;
  {
    absl::StatusOr<Split> split = OpenData({.cifar = path, .validation_fraction = 0.5});
    ASSERT_TRUE(split.ok()) << split.status();
    validation = split->validation;
  }

  EXPECT_THAT((ReadSamples<float, std::int64_t>(*validation, {0, 1}).targets), ElementsAre(2, 3));
}

TEST(OpenDataTest, MayBeReadFromSeveralThreads) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.txt", std::string(100'000, 'x'));
  const absl::StatusOr<Split> split = OpenData({.text = path, .context = 10});
  ASSERT_TRUE(split.ok()) << split.status();
  std::vector<std::int64_t> sums(4, 0);

  std::vector<std::thread> threads;
  for (std::int64_t& sum : sums) {
    threads.emplace_back([&split, &sum] {
      for (std::uint64_t i = 0; i < 1000; ++i) {
        for (const std::int64_t token :
             ReadSamples<std::int64_t, std::int64_t>(*split->train, {i}).inputs) {
          sum += token;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(sums, ::testing::Each(std::int64_t{'x'} * 10'000));
}

TEST(OpenDataDeathTest, IndexBeyondTheSizeIsABugOfTheCaller) {
  const ScratchFolder folder;
  const std::string path = folder.Write("c.bin", CifarRecords({0, 1, 2, 3}));
  const absl::StatusOr<Split> split = OpenData({.cifar = path, .validation_fraction = 0.5});
  ASSERT_TRUE(split.ok()) << split.status();

  EXPECT_DEATH((ReadSamples<float, std::int64_t>(*split->train, {2})), "check failed");
}

// Every way to cut a file short ends in an error about it, never in a crash or a success.
void ExpectErrorForEveryTruncation(const Bytes& whole, const auto& options_for) {
  const ScratchFolder folder;
  const std::string path = folder.Write("file", whole);
  ASSERT_EQ(ErrorOf(options_for(path)), "ok");
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const std::string error = ErrorOf(options_for(path));
    ASSERT_THAT(error, StartsWith("data.")) << "cut to " << size << " bytes";
    ASSERT_THAT(error, HasSubstr("'" + path + "' ")) << "cut to " << size << " bytes";
    ASSERT_THAT(error, Not(HasSubstr("\n"))) << "cut to " << size << " bytes";
  }
}

DataOptions AsCifar(const std::string& path) { return {.cifar = path}; }
DataOptions AsIdx(const std::string& path) { return {.idx = DataOptions::FilePair{path, path}}; }
DataOptions AsNumpy(const std::string& path) {
  return {.numpy = DataOptions::FilePair{path, path}};
}

TEST(TruncationTest, EveryCutOfACifarFileIsAnError) {
  ExpectErrorForEveryTruncation(CifarRecords({1}), AsCifar);
}

TEST(TruncationTest, EveryCutOfAnIdxFileIsAnError) {
  const Bytes whole = IdxFile({.shape = {2, 3, 4}, .elements = Bytes(24, 9)});
  ExpectErrorForEveryTruncation(whole, AsIdx);
  ExpectErrorForEveryTruncation(Gzip(whole), AsIdx);
}

TEST(TruncationTest, EveryCutOfANumpyFileIsAnError) {
  for (const std::uint8_t version : {1, 2, 3}) {
    ExpectErrorForEveryTruncation(
        NpyFile({.shape = "(2, 3)", .elements = Bytes(24, 9), .version = version}), AsNumpy);
  }
}

// Damaged bytes may give a success (a pixel changed); what is asked for is that nothing crashes and
// that every sample of a success can be read.
void ExpectErrorOrSamples(const absl::StatusOr<Split>& split) {
  if (!split.ok()) {
    EXPECT_THAT(std::string(split.status().message()), StartsWith("data."));
    return;
  }
  const Dataset& train = *split->train;
  std::vector<std::byte> inputs(train.inputs().front().BytesPerSample());
  std::vector<std::byte> targets(train.targets().BytesPerSample());
  for (std::uint64_t i = 0; i < train.size(); ++i) train.Read({&i, 1}, inputs, targets);
  EXPECT_FALSE(targets.empty());
}

void ExpectNoCrashForAnyDamage(const Bytes& whole, const auto& options_for) {
  const ScratchFolder folder;
  const std::string path = folder.Write("file", whole);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&file](std::size_t at, std::uint8_t value) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const std::uint8_t value : Bytes{0, 1, 9, '(', '\'', ',', 127, 128, 255}) {
      SCOPED_TRACE("byte " + std::to_string(at) + " is " + std::to_string(value));
      put(at, value);
      ExpectErrorOrSamples(OpenData(options_for(path)));
    }
    put(at, whole[at]);
  }
}

TEST(DamagePropertyTest, AnyByteOfAnIdxFileMayHaveAnyValue) {
  const Bytes whole = IdxFile({.shape = {2, 3}, .elements = Bytes(6, 9)});
  ExpectNoCrashForAnyDamage(whole, AsIdx);
  ExpectNoCrashForAnyDamage(Gzip(whole), AsIdx);
}

TEST(DamagePropertyTest, AnyByteOfANumpyFileMayHaveAnyValue) {
  ExpectNoCrashForAnyDamage(NpyFile({.descr = "|u1", .shape = "(2, 3)", .elements = Bytes(6, 9)}),
                            AsNumpy);
}

}  // namespace
}  // namespace tactus::data
