#include "cuda/ops/sign_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;

std::uint32_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// What one party of an exchange keeps and sends.
struct Party {
  std::vector<float> error{};
  std::vector<float> scales{};
  std::vector<std::uint32_t> words{};

  explicit Party(const SegmentTable& segments)
      : error(FlatLength(segments)),
        scales(segments.size()),
        words(FirstWords(segments, 1).back(), 0xaaaaaaaa) {}

  void Encode(const SegmentTable& segments, std::span<const float> input,
              SignSharing sharing = SignSharing::kSegment) {
    host::SignScales(segments, sharing, {input, error}, scales);
    host::SignPack(segments, {input, error}, scales, words);
  }

  SignMessage message() const { return {words, scales}; }
};

SegmentTable TableOf(std::initializer_list<std::size_t> lengths) {
  SegmentTable segments;
  for (const std::size_t length : lengths) segments.push_back({.length = length});
  AssignOffsets(segments);
  return segments;
}

std::vector<float> Padded(std::vector<float> values) {
  values.resize((values.size() + 15) / 16 * 16);
  return values;
}

std::string Signs(std::uint32_t word, int count) {
  std::string signs;
  for (int i = 0; i < count; ++i) signs += (word >> i & 1) != 0 ? '+' : '-';
  return signs;
}

// The two workers of test vectors 7h; each also serves one half of the vector.
struct Exchange {
  const SegmentTable whole = TableOf({16});
  const SegmentTable half = TableOf({8});
  const std::vector<float> inputs[2] = {{1, -1, 2, 0, 3, -2, 0, 1, -4, 1, 0, 0, 2, -1, 1, -1},
                                        {1, 1, -2, 2, 1, -2, 2, 0, -2, -1, 0, 2, 0, 1, 1, 1}};
  Party workers[2] = {Party(whole), Party(whole)};
  Party servers[2] = {Party(half), Party(half)};

  void Round() {
    std::vector<float> mean(16);
    for (int p = 0; p < 2; ++p) {
      workers[p].Encode(whole, inputs[p]);
      host::SignAdd(whole, workers[p].message(), 0.5, mean);
    }
    for (std::size_t p = 0; p < 2; ++p) {
      const auto begin = mean.begin() + static_cast<std::ptrdiff_t>(8 * p);
      servers[p].Encode(half, Padded(std::vector<float>(begin, begin + 8)));
    }
  }
};

TEST(SignPackPaperTest, TheFirstExchangeGivesItsTestVector) {
  Exchange exchange;

  exchange.Round();

  EXPECT_NEAR(exchange.workers[0].scales[0], std::sqrt(44.0 / 16), 1e-6);
  EXPECT_NEAR(exchange.workers[1].scales[0], std::sqrt(31.0 / 16), 1e-6);
  EXPECT_EQ(Signs(exchange.workers[0].words[0], 32), "+-+++-++-++++-+-----------------");
  EXPECT_EQ(Signs(exchange.workers[1].words[0], 16), "++-++-++--++++++");
  EXPECT_NEAR(exchange.workers[0].error[0], -0.6583124, 1e-6);
  EXPECT_NEAR(exchange.workers[0].error[1], 0.6583124, 1e-6);
  EXPECT_NEAR(exchange.workers[0].error[3], -1.6583124, 1e-6);
  EXPECT_NEAR(exchange.workers[0].error[4], 1.3416876, 1e-6);
  EXPECT_NEAR(exchange.servers[0].scales[0], 1.3224762, 1e-6);
  EXPECT_NEAR(exchange.servers[1].scales[0], 1.2084739, 1e-6);
  EXPECT_EQ(Signs(exchange.servers[0].words[0], 8), "+-+++-++");
  EXPECT_EQ(Signs(exchange.servers[1].words[0], 8), "-++++-+-");
  const std::vector<double> expected = {.2026505, 1.1892905, -1.1892905, .2026505,
                                        .2026505, -.2026505, .2026505,   .2026505};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(exchange.servers[0].error[i], expected[i], 1e-6) << i;
  }
}

TEST(SignPackPaperTest, TheSecondExchangeCarriesTheErrors) {
  Exchange exchange;

  exchange.Round();
  exchange.Round();

  EXPECT_NEAR(exchange.workers[0].scales[0], 2.3363300, 2e-6);
  EXPECT_NEAR(exchange.workers[1].scales[0], 1.7537901, 2e-6);
  EXPECT_NEAR(exchange.servers[0].scales[0], 1.4589875, 2e-6);
  EXPECT_NEAR(exchange.servers[1].scales[0], 1.4299054, 2e-6);
  EXPECT_EQ(Signs(exchange.servers[0].words[0], 8), "++--+--+");
  EXPECT_EQ(Signs(exchange.servers[1].words[0], 8), "---+++++");
}

TEST(SignPackPaperTest, ExactZerosOscillate) {
  const SegmentTable segments = TableOf({4});
  Party party(segments);

  party.Encode(segments, Padded({0, 0, 1, -1}));

  EXPECT_NEAR(party.scales[0], 0.7071068, 1e-6);
  EXPECT_NEAR(party.error[0], -0.7071068, 1e-6);
  EXPECT_NEAR(party.error[1], -0.7071068, 1e-6);
  EXPECT_NEAR(party.error[2], 0.2928932, 1e-6);
  EXPECT_NEAR(party.error[3], -0.2928932, 1e-6);
}

class SignPackTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SignPackTest, IsBitIdenticalToItsFormulaOverThreeRounds) {
  const std::size_t length = GetParam();
  const SegmentTable segments = {{.offset = 0, .length = length}};
  Rng rng(length);
  Guarded error(length);
  std::vector<float> scales(1);
  std::vector<std::uint32_t> words(PackedWords(length, 1) + 2, 0x12345678);
  const std::span<std::uint32_t> inner = std::span(words).subspan(1, words.size() - 2);
  for (int round = 0; round < 3; ++round) {
    const Guarded input = RandomBuffer(rng, length);
    const Guarded before = error;

    host::SignScales(segments, SignSharing::kSegment, {input.span(), error.span()}, scales);
    host::SignPack(segments, {input.span(), error.span()}, scales, inner);

    double norm2 = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const float q = input.span()[i] + before.span()[i];
      norm2 += static_cast<double>(q) * q;
      const bool bit = q >= 0;
      ASSERT_EQ((inner[i / 32] >> (i % 32) & 1) != 0, bit) << i;
      ASSERT_EQ(Bits(error[i]), Bits(bit ? q - scales[0] : q + scales[0])) << i;
    }
    const double expected = length == 0 ? 0 : std::sqrt(norm2 / static_cast<double>(length));
    EXPECT_LE(UlpsBetween(scales[0], static_cast<float>(expected)), 1);
    if (length % 32 != 0) {
      EXPECT_EQ(inner.back() >> (length % 32), 0u);
    }
  }
  EXPECT_TRUE(error.Intact());
  EXPECT_TRUE(words.front() == 0x12345678 && words.back() == 0x12345678);
}

TEST_P(SignPackTest, UnpackingGivesTheScaleWithEverySign) {
  const std::size_t length = GetParam();
  const SegmentTable segments = {{.offset = 0, .length = length}};
  Rng rng(length);
  const Guarded input = RandomBuffer(rng, length);
  const std::vector<float> scales = {0.75f};
  std::vector<std::uint32_t> words(PackedWords(length, 1));
  Guarded error(length);
  Guarded out(length);
  Guarded sum = input;
  host::SignPack(segments, {input.span(), error.span()}, scales, words);

  host::SignUnpack(segments, {words, scales}, out.span());
  host::SignAdd(segments, {words, scales}, 1.0 / 3, sum.span());

  for (std::size_t i = 0; i < length; ++i) {
    const float x = input.span()[i];
    ASSERT_EQ(out[i], x >= 0 ? 0.75f : -0.75f) << i;
    ASSERT_EQ(Bits(sum[i]), Bits(x + (x >= 0 ? 0.25f : -0.25f))) << i;
  }
  EXPECT_TRUE(out.Intact() && sum.Intact());
}

INSTANTIATE_TEST_SUITE_P(Lengths, SignPackTest, testing::ValuesIn(kLengths));

TEST(SignPackTest, SegmentsHaveScalesOfTheirOwnOrOneForAll) {
  const SegmentTable segments = TableOf({2, 0, 3});
  std::vector<float> input(32);
  input[0] = 3;
  input[1] = -4;
  input[16] = 1;
  Party apart(segments);
  Party together(segments);

  apart.Encode(segments, input, SignSharing::kSegment);
  together.Encode(segments, input, SignSharing::kTable);

  EXPECT_THAT(apart.scales, ElementsAre(std::sqrt(12.5f), 0, std::sqrt(1.0f / 3)));
  EXPECT_THAT(together.scales, Each(std::sqrt(26.0f / 5)));
}

TEST(SignPackTest, PaddingIsNeitherMeasuredNorSent) {
  const SegmentTable segments = TableOf({2, 33});
  std::vector<float> input(FlatLength(segments), 100);
  std::fill_n(input.begin(), 2, 1.0f);
  std::fill_n(input.begin() + 16, 33, -1.0f);
  Party party(segments);
  std::vector<float> out(input.size(), 7);

  party.Encode(segments, input);
  host::SignUnpack(segments, party.message(), out);

  EXPECT_THAT(party.scales, ElementsAre(1, 1));
  EXPECT_THAT(party.words, ElementsAre(3, 0, 0));
  EXPECT_THAT(party.error, Each(0));
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 7);
  EXPECT_EQ(out[48], -1);
  EXPECT_EQ(out[49], 7);
}

TEST(SignPackTest, AVectorOfZerosLeavesNothingBehind) {
  const SegmentTable segments = TableOf({40});
  const std::vector<float> zeros(48);
  Party party(segments);
  std::vector<float> out(48, 5);

  party.Encode(segments, zeros);
  host::SignUnpack(segments, party.message(), out);

  EXPECT_EQ(party.scales[0], 0);
  EXPECT_THAT(party.error, Each(0));
  EXPECT_EQ(std::count(out.begin(), out.end(), 0.0f), 40);
}

// Nothing is lost: over any number of rounds what was put in is what was sent and what is left.
TEST(SignPackPropertyTest, InputsAddUpToWhatWasSentAndTheError) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    SegmentTable segments(rng.Below(4) + 1);
    for (Segment& segment : segments) segment.length = rng.Below(100);
    AssignOffsets(segments);
    const std::size_t length = FlatLength(segments);
    const SignSharing sharing = seed % 2 == 0 ? SignSharing::kSegment : SignSharing::kTable;
    Party party(segments);
    std::vector<double> balance(length);
    for (int round = 0; round < 10; ++round) {
      std::vector<float> input(length);
      for (const Segment& segment : segments) {
        for (std::size_t i = 0; i < segment.length; ++i) {
          input[segment.offset + i] = static_cast<float>(rng.Normal());
        }
      }
      std::vector<float> sent(length);
      party.Encode(segments, input, sharing);
      host::SignUnpack(segments, party.message(), sent);
      for (std::size_t i = 0; i < length; ++i) balance[i] += double{input[i]} - double{sent[i]};
    }

    // 2 roundings a round, of numbers below 16.
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_NEAR(balance[i], party.error[i], 20 * 16 * 0x1p-24) << i;
    }
  }
}

TEST(SignPackDeathTest, RefusesWhatItsContractExcludes) {
  const SegmentTable segments = TableOf({16});
  std::vector<float> flat(16);
  std::vector<float> longer(32);
  std::vector<float> one(1);
  std::vector<std::uint32_t> word(1);
  std::vector<std::uint32_t> words(2);
  const auto scales = [&](std::span<float> input, std::span<float> error) {
    host::SignScales(segments, SignSharing::kSegment, {input, error}, one);
  };

  EXPECT_DEATH(scales(flat, longer), "check failed");
  EXPECT_DEATH(scales(one, one), "check failed");
  EXPECT_DEATH(host::SignPack(segments, {flat, flat}, one, words), "check failed");
  EXPECT_DEATH(host::SignPack(segments, {flat, flat}, flat, word), "check failed");
  EXPECT_DEATH(host::SignUnpack(segments, {words, one}, flat), "check failed");
  EXPECT_DEATH(host::SignUnpack(segments, {word, one}, one), "check failed");
  EXPECT_DEATH(host::SignAdd(segments, {word, flat}, 1, flat), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
