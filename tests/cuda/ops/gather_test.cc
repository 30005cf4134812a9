#include "cuda/ops/gather.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

class GatherTest : public testing::TestWithParam<std::size_t> {};

// Three parts of a stretch, with padding between and behind them.
struct Scattered {
  explicit Scattered(std::size_t length)
      : values{RandomBuffer(rng, length), RandomBuffer(rng, 5), RandomBuffer(rng, length)},
        out(RandomBuffer(rng, 2 * Padded(length) + 16)) {
    std::size_t offset = 0;
    for (const Guarded& each : values) {
      parts.push_back({.offset = offset, .length = each.span().size(), .from = each.span().data()});
      offset += each.span().size() == 5 ? 8 : Padded(length);
    }
  }
  static std::size_t Padded(std::size_t length) { return (length + 7) / 4 * 4; }

  Rng rng{1};
  std::vector<Guarded> values;
  std::vector<GatherPart> parts;
  Guarded out;
};

TEST_P(GatherTest, ReplacesTheWholeStretchByTheValuesAndZeros) {
  Scattered scattered(GetParam());
  Guarded expected = scattered.out;
  for (float& value : expected.span()) value = 0;
  for (const GatherPart& part : scattered.parts) {
    for (std::size_t i = 0; i < part.length; ++i) expected[part.offset + i] = part.from[i];
  }

  host::Gather({.parts = scattered.parts}, scattered.out.span());

  for (std::size_t i = 0; i < expected.span().size(); ++i) {
    ASSERT_EQ(scattered.out[i], expected[i]) << i;
  }
  EXPECT_TRUE(scattered.out.Intact());
}

TEST_P(GatherTest, AddsToWhatIsThereAndLeavesTheRest) {
  Scattered scattered(GetParam());
  Guarded expected = scattered.out;
  for (const GatherPart& part : scattered.parts) {
    for (std::size_t i = 0; i < part.length; ++i) expected[part.offset + i] += part.from[i];
  }

  host::Gather({.parts = scattered.parts, .adds = true}, scattered.out.span());

  for (std::size_t i = 0; i < expected.span().size(); ++i) {
    ASSERT_EQ(scattered.out[i], expected[i]) << i;
  }
  EXPECT_TRUE(scattered.out.Intact());
}

INSTANTIATE_TEST_SUITE_P(Lengths, GatherTest, testing::ValuesIn(kLengths));

TEST(GatherTest, OfNoPartIsZerosOrNothing) {
  std::vector<float> out = {1, 2, 3, 4};

  host::Gather({.adds = true}, out);
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4}));
  host::Gather({}, out);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0}));
}

TEST(GatherTest, HasTheBitsOfAnAdditionIntoZeros) {
  const std::vector<float> values = {-0.0f, 1};
  const std::vector<GatherPart> parts = {{.length = 2, .from = values.data()}};
  std::vector<float> out = {7, 7};

  host::Gather({.parts = parts}, out);

  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 0u);
  EXPECT_EQ(out[1], 1);
}

}  // namespace
}  // namespace tactus::cuda
