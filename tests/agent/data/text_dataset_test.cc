#include "agent/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "agent/data/mapped_file.h"
#include "agent/data/text_files.h"
#include "base/check.h"
#include "base/rng.h"
#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;

using TextSamples = Samples<std::int64_t, std::int64_t>;

TextSamples ReadText(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
  return ReadSamples<std::int64_t, std::int64_t>(dataset, indices);
}

// The inputs of all samples of a data set, as text.
std::string AllText(const Dataset& dataset) {
  std::vector<std::uint64_t> indices(dataset.size());
  std::iota(indices.begin(), indices.end(), 0);
  const TextSamples samples = ReadText(dataset, indices);
  return std::string(samples.inputs.begin(), samples.inputs.end());
}

Split MustOpen(const TextOptions& options) {
  absl::StatusOr<Split> split = OpenText(options);
  EXPECT_TRUE(split.ok()) << split.status();
  return split.ok() ? *std::move(split) : Split{};
}

std::string ErrorOfText(const TextOptions& options) {
  const absl::StatusOr<Split> split = OpenText(options);
  return split.ok() ? "ok" : std::string(split.status().message());
}

TEST(TextDatasetTest, SampleIsAWindowAndTheSameOneByteFurther) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", "abcdefghi");

  const Split split = MustOpen({.path = path, .context = 4, .validation_fraction = 0});

  ASSERT_EQ(split.train->size(), 2U);
  EXPECT_EQ(split.train->inputs().front(), (TensorSpec{.type = ElementType::kInt64, .shape = {4}}));
  EXPECT_EQ(split.train->targets(), split.train->inputs().front());
  const TextSamples samples = ReadText(*split.train, {1, 0});
  EXPECT_THAT(samples.inputs, ElementsAre('e', 'f', 'g', 'h', 'a', 'b', 'c', 'd'));
  EXPECT_THAT(samples.targets, ElementsAre('f', 'g', 'h', 'i', 'b', 'c', 'd', 'e'));
}

TEST(TextDatasetTest, LastWindowNeedsOneByteMoreThanItsContext) {
  const ScratchFolder folder;

  const Split eight =
      MustOpen({.path = folder.Write("8", "abcdefgh"), .context = 4, .validation_fraction = 0});

  EXPECT_EQ(eight.train->size(), 1U);
}

TEST(TextDatasetTest, BytesAbove127ArePositiveTokens) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", Bytes{0, 128, 255});

  const Split split = MustOpen({.path = path, .context = 2, .validation_fraction = 0});

  const TextSamples samples = ReadText(*split.train, {0});
  EXPECT_THAT(samples.inputs, ElementsAre(0, 128));
  EXPECT_THAT(samples.targets, ElementsAre(128, 255));
}

TEST(TextDatasetTest, LastBytesAreValidationWithWindowsOfTheirOwn) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", "abcdefghijklmnopqrst");

  const Split split = MustOpen({.path = path, .context = 3, .validation_fraction = 0.25});

  EXPECT_EQ(AllText(*split.train), "abcdefghijkl");  // of a .. o: (15 - 1) / 3 windows
  ASSERT_NE(split.validation, nullptr);
  EXPECT_EQ(AllText(*split.validation), "pqr");  // of p .. t
  EXPECT_THAT(ReadText(*split.validation, {0}).targets, ElementsAre('q', 'r', 's'));
}

TEST(TextDatasetTest, TrainingHasAllBytesWhenValidationWouldHaveNoSample) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", "abcdefghi");

  const Split split = MustOpen({.path = path, .context = 4, .validation_fraction = 0.4});

  EXPECT_EQ(split.validation, nullptr);
  EXPECT_EQ(AllText(*split.train), "abcdefgh");
}

TEST(TextDatasetTest, WindowSpansAsManyFilesAsItTakes) {
  const ScratchFolder folder;
  folder.Write("0", "ab");
  folder.Write("1", "");
  folder.Write("2", "c");
  folder.Write("3", "d");
  folder.Write("4", "efghi");

  const Split split = MustOpen({.path = folder.path(), .context = 4, .validation_fraction = 0});

  const TextSamples samples = ReadText(*split.train, {0, 1});
  EXPECT_EQ(std::string(samples.inputs.begin(), samples.inputs.end()), "abcdefgh");
  EXPECT_EQ(std::string(samples.targets.begin(), samples.targets.end()), "bcdefghi");
}

// Oracle: join the strings and cut the windows by hand.
TEST(TextDatasetPropertyTest, AgreesWithTheJoinedFilesForAnySizesAndContext) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const ScratchFolder folder;
    std::string joined;
    const std::uint64_t files = 1 + rng.Below(12);
    for (std::uint64_t f = 0; f < files; ++f) {
      std::string content(rng.Below(9), ' ');
      for (char& c : content) c = static_cast<char>('a' + rng.Below(26));
      folder.Write(std::string(1, static_cast<char>('a' + f)), content);
      joined += content;
    }
    const std::uint32_t context = static_cast<std::uint32_t>(1 + rng.Below(10));

    const absl::StatusOr<Split> split =
        OpenText({.path = folder.path(), .context = context, .validation_fraction = 0});

    ASSERT_EQ(split.ok(), joined.size() > context) << split.status();
    if (!split.ok()) continue;
    const std::uint64_t size = (joined.size() - 1) / context;
    ASSERT_EQ(split->train->size(), size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const TextSamples sample = ReadText(*split->train, {i});
      EXPECT_EQ(std::string(sample.inputs.begin(), sample.inputs.end()),
                joined.substr(i * context, context));
      EXPECT_EQ(std::string(sample.targets.begin(), sample.targets.end()),
                joined.substr(i * context + 1, context));
    }
  }
}

// Lowers the number of descriptors this process may have while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t limit) {
    TACTUS_CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lowered = {.rlim_cur = limit, .rlim_max = before_.rlim_max};
    TACTUS_CHECK(::setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  }
  ~FewDescriptors() { TACTUS_CHECK(::setrlimit(RLIMIT_NOFILE, &before_) == 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

TEST(TextDatasetTest, HoldsMoreFilesThanTheProcessMayHaveDescriptors) {
  const ScratchFolder folder;
  constexpr std::size_t kSmallFiles = 100;
  constexpr std::size_t kLargeFiles = 60;
  for (std::size_t f = 0; f < kSmallFiles; ++f) folder.Write("small" + std::to_string(f), "xy");
  for (std::size_t f = 0; f < kLargeFiles; ++f) {
    folder.Write("large" + std::to_string(f), Bytes(MappedFile::kMappedBytesMin, 'x'));
  }
  const FewDescriptors limit(40);

  const Split split = MustOpen({.path = folder.path(), .context = 1, .validation_fraction = 0});

  EXPECT_EQ(split.train->size(), 2 * kSmallFiles + kLargeFiles * MappedFile::kMappedBytesMin - 1);
}

TEST(TextDatasetTest, RefusesMoreMappingsThanItMayTake) {
  const ScratchFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    folder.Write(name, Bytes(MappedFile::kMappedBytesMin, 'x'));
  }

  const absl::Status status = OpenText({.path = folder.path(), .mappings_max = 2}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(OpenText({.path = folder.path(), .mappings_max = 3}).ok());
}

TEST(TextDatasetTest, EmptyFileIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", "");

  EXPECT_EQ(ErrorOfText({.path = path}), "'" + path + "' is empty");
}

TEST(TextDatasetTest, TooLittleTextIsRefusedWithTheNumbers) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", std::string(64, 'x'));

  EXPECT_EQ(ErrorOfText({.path = path}),
            "'" + path + "' has 64 bytes; one sample of context 64 takes 65");
}

TEST(TextDatasetTest, TooLittleTrainingTextIsRefusedWithTheNumbers) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", std::string(100, 'x'));

  EXPECT_EQ(
      ErrorOfText({.path = path, .context = 64, .validation_fraction = 0.7}),
      "'" + path + "' has 100 bytes, 30 of them for training; one sample of context 64 takes 65");
}

TEST(TextDatasetTest, ReadsTheHeadersOfTheCompilerWithoutLosingAByte) {
  if (!std::filesystem::is_directory("/usr/include/c++")) {
    GTEST_SKIP() << "no /usr/include/c++ on this machine";
  }
  std::uint64_t bytes = 0;
  const auto files = ListTextFiles("/usr/include/c++");
  ASSERT_TRUE(files.ok()) << files.status();
  for (const std::string& file : *files) bytes += std::filesystem::file_size(file);

  const Split split =
      MustOpen({.path = "/usr/include/c++", .context = 64, .validation_fraction = 0});

  EXPECT_EQ(split.train->size(), (bytes - 1) / 64);
}

TEST(TextDatasetTest, ReadsRealTextAsItIs) {
  const std::optional<std::string> real = RealDataFolder();
  if (!real) GTEST_SKIP() << "no folder of real data; name one in TACTUS_SHARED_DATA";
  const std::string path = *real + "/tinyshakespeare.txt";
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

  const Split split = MustOpen({.path = path, .context = 64, .validation_fraction = 0.1});

  const std::uint64_t validation = text.size() / 10;
  const std::uint64_t train = text.size() - validation;
  EXPECT_EQ(AllText(*split.train), text.substr(0, (train - 1) / 64 * 64));
  EXPECT_EQ(AllText(*split.validation), text.substr(train, (validation - 1) / 64 * 64));
}

}  // namespace
}  // namespace tactus::data
