#include "cuda/ops/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace tactus::cuda {
namespace {

struct KnownAnswer {
  PhiloxBlock counter;
  PhiloxKey key;
  PhiloxBlock expected;
};

// The lines "philox4x32 10" of tests/kat_vectors of the authors' library Random123 at 9545ff64.
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

void ExpectEqual(const PhiloxBlock& found, const PhiloxBlock& expected) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(found.word[i], expected.word[i]) << i;
}

TEST(PhiloxPaperTest, GivesTheKnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    ExpectEqual(Philox(known.counter, known.key), known.expected);
  }
}

TEST(PhiloxTest, IsKnownWhenCompiled) {
  constexpr PhiloxBlock kBlock = Philox({}, {});

  static_assert(kBlock.word[0] == 0x6627e8d5);
}

TEST(PhiloxTest, AQuadIsTheBlockOfItsPlace) {
  const Draws draws{.seed = 1, .round = 2, .worker = 3, .stream = 4};

  ExpectEqual(WordsOfQuad(draws, 5, 6), Philox({{2, 6, 3, 4}}, {{1, 5}}));
}

TEST(PhiloxTest, EveryFieldMakesOtherDraws) {
  const auto first = [](const Draws& draws, std::uint32_t segment, std::uint32_t quad) {
    return WordsOfQuad(draws, segment, quad).word[0];
  };

  const std::set<std::uint32_t> words = {first({}, 0, 0),
                                         first({.seed = 1}, 0, 0),
                                         first({.round = 1}, 0, 0),
                                         first({.worker = 1}, 0, 0),
                                         first({.stream = 1}, 0, 0),
                                         first({}, 1, 0),
                                         first({}, 0, 1)};

  EXPECT_EQ(words.size(), 7u);
}

TEST(PhiloxPropertyTest, WordsAreUniformAndApartFromTheirNeighbours) {
  constexpr int kQuads = 100'000;
  double sum = 0;
  double product = 0;
  for (std::uint32_t quad = 0; quad < kQuads; ++quad) {
    const PhiloxBlock block = WordsOfQuad({.seed = 7}, 0, quad);
    for (int i = 0; i < 4; ++i) sum += block.word[i] * 0x1p-32;
    for (int i = 0; i < 3; ++i) {
      product += (block.word[i] * 0x1p-32 - 0.5) * (block.word[i + 1] * 0x1p-32 - 0.5);
    }
  }

  // Five standard deviations: a uniform's is 1 / sqrt(12), a product's of two 1 / 12.
  EXPECT_NEAR(sum / (4 * kQuads), 0.5, 5 * 0.2887 / 632);
  EXPECT_NEAR(product / (3 * kQuads), 0, 5 * 0.0833 / 547);
}

}  // namespace
}  // namespace tactus::cuda
