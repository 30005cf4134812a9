#include "agent/engine/combine/sketch_talk.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr std::size_t kSpoken = 16;

// Section 1h of the specification: two members' values, three rows of eight columns, two applied.
const std::vector<std::vector<float>> kVectors = {
    {10, 0, -1, 2, 0, 0, 3, -7, 0, 1, 0, 0, -2, 0, 1, 0},
    {8, 1, 0, -2, 0, 0, -3, -9, 0, 0, 2, 0, -1, 0, 0, 1}};

struct Said {
  std::vector<std::vector<float>> sums;  // by rank
  std::vector<std::vector<float>> left;
  std::uint64_t payload = 0;
};

Said Talk(std::vector<std::vector<float>> values, std::size_t candidates, std::size_t offered = 0) {
  const int members = static_cast<int>(values.size());
  const auto transports = collective::MakeInProcessGroup(members, [] { return Instant(); });
  const std::vector<float> nothing(kSpoken);
  const SketchHash hash(42, 3, kSpoken);
  const std::vector<SketchPart> parts = {{.place = {.offset = 0, .length = kSpoken},
                                          .columns = 8,
                                          .candidates = candidates,
                                          .applied = 2,
                                          .offered = offered}};
  Said said{.sums = std::move(values), .left = {}, .payload = 0};
  said.left.assign(transports.size(), std::vector<float>(kSpoken));
  std::vector<std::unique_ptr<SketchTalk>> talks;
  std::vector<std::unique_ptr<collective::Collective>> exchanges;
  for (std::size_t rank = 0; rank < transports.size(); ++rank) {
    SketchTalk& talk = *talks.emplace_back(std::make_unique<SketchTalk>(parts));
    talk.SetHash(hash);
    talk.SetLeft({.left = nothing, .still_left = said.left[rank]});
    talk.Open({.values = said.sums[rank]}, static_cast<int>(rank), members);
    exchanges.push_back(transports[rank]->StartConversation(talk));
  }
  for (const auto& exchange : exchanges) {
    EXPECT_EQ(exchange->Wait().progress, collective::Progress::kDone);
  }
  said.payload = talks[0]->payload();
  return said;
}

TEST(SketchTalkPaperTest, Tv2FalseCandidatesAreNotApplied) {
  const Said said = Talk(kVectors, 4);

  for (const std::vector<float>& sum : said.sums) {
    EXPECT_THAT(sum, ElementsAre(18, 0, 0, 0, 0, 0, 0, -16, 0, 0, 0, 0, 0, 0, 0, 0));
  }
  EXPECT_THAT(said.left[0], ElementsAre(0, 0, -1, 2, 0, 0, 3, 0, 0, 1, 0, 0, -2, 0, 1, 0));
  EXPECT_THAT(said.left[1], ElementsAre(0, 1, 0, -2, 0, 0, -3, 0, 0, 0, 2, 0, -1, 0, 0, 1));
  EXPECT_EQ(said.payload, (3 * 8 + 4) * sizeof(float));
}

// The one that loses the tie stays for later, whole.
TEST(SketchTalkPaperTest, Tv3WithoutMoreCandidatesALargeValueIsMissed) {
  const Said said = Talk(kVectors, 2);

  for (const std::vector<float>& sum : said.sums) {
    EXPECT_THAT(sum, ElementsAre(18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  }
  EXPECT_EQ(said.left[0][7], -7);
  EXPECT_EQ(said.left[1][7], -9);
}

// What one offers is applied with what all have of it.
TEST(SketchTalkTest, TheExactSumIsOfWhatWasNotOfferedToo) {
  std::vector<std::vector<float>> vectors(2, std::vector<float>(kSpoken));
  vectors[0] = {10, 5, 9};
  vectors[1] = {1, 7, 8};
  for (std::vector<float>& each : vectors) each.resize(kSpoken);

  const Said said = Talk(vectors, 8, 1);

  EXPECT_EQ(said.sums[0][0], 11);
  EXPECT_EQ(said.sums[0][2], 17);
  EXPECT_EQ(said.sums[0][1], 0);
  EXPECT_EQ(said.left[1][1], 7);
}

// Section 1g, invariant 7; sums of whole numbers are exact.
TEST(SketchTalkTest, RanksDoNotMatter) {
  std::vector<std::vector<float>> vectors = kVectors;
  vectors.push_back({0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, -4, 0, 0, 0, 2});
  const Said said = Talk(vectors, 4);
  std::rotate(vectors.begin(), vectors.begin() + 1, vectors.end());

  const Said rotated = Talk(vectors, 4);

  EXPECT_EQ(rotated.sums[0], said.sums[0]);
  EXPECT_THAT(rotated.left, ElementsAreArray({said.left[1], said.left[2], said.left[0]}));
}

// As many estimates as there are values with few of them: those of 0 are no candidates.
TEST(SketchTalkTest, NothingToSayTakesNoValues) {
  std::vector<float> one(kSpoken);
  one[5] = 3;

  EXPECT_EQ(Talk({std::vector<float>(kSpoken), std::vector<float>(kSpoken)}, 4).payload,
            3 * 8 * sizeof(float));
  EXPECT_EQ(Talk({one, std::vector<float>(kSpoken)}, 4).sums[1], one);
}

}  // namespace
}  // namespace tactus::engine
