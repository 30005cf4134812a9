// Who joins a group, and what they have to have loaded, and to know.

#include "coordinator/job/joiners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint64_t> WorkersOf(const std::vector<Joiner>& joiners) {
  std::vector<std::uint64_t> workers;
  for (const Joiner& joiner : joiners) workers.push_back(joiner.member.worker.value);
  return workers;
}

ReadyMessage Speed(double samples_per_second) {
  ReadyMessage ready;
  ready.samples_per_second = samples_per_second;
  return ready;
}

// Of 1 to 4, 1 still loads, the others compute 10, 30 and 20 samples a second.
Joiners FourStarted() {
  Joiners joiners;
  joiners.Start({{.worker = {1}}, {.worker = {2}}, {.worker = {3}}, {.worker = {4}}}, Instant{});
  joiners.SetReady({2}, Speed(10), Instant{});
  joiners.SetReady({3}, Speed(30), Instant{});
  joiners.SetReady({4}, Speed(20), Instant{});
  return joiners;
}

TEST(JoinersTest, TheFastestAreTakenInTheirOrderAndTheOthersAreSpare) {
  Joiners joiners = FourStarted();
  EXPECT_THAT(WorkersOf(joiners.Ready()), ElementsAre(3, 4, 2));
  EXPECT_THAT(WorkersOf(joiners.Take(2)), ElementsAre(3, 4));

  EXPECT_THAT(WorkersOf(joiners.coming()), ElementsAre(1));
  EXPECT_THAT(WorkersOf(joiners.spares()), ElementsAre(2));
  EXPECT_FALSE(joiners.Due());
  EXPECT_TRUE(joiners.Has({2}));
  joiners.SetReady({1}, Speed(5), Instant{});
  EXPECT_THAT(WorkersOf(joiners.Take(5)), ElementsAre(1, 2)) << "who comes before who is spare";
  EXPECT_TRUE(joiners.empty());
}

TEST(JoinersTest, SparesAreInTheOrderOfTheirSpeeds) {
  Joiners joiners = FourStarted();
  EXPECT_THAT(joiners.Take(0), IsEmpty());
  joiners.AddSpare({.member = {.worker = {9}}, .ready = Speed(25), .rounds = 7});

  EXPECT_THAT(WorkersOf(joiners.spares()), ElementsAre(3, 9, 4, 2));
  EXPECT_EQ(joiners.Remove({9}).worker, WorkerId{9});
  EXPECT_THAT(WorkersOf(joiners.spares()), ElementsAre(3, 4, 2));
  joiners.Clear();
  EXPECT_TRUE(joiners.empty());
}

TEST(JoinersTest, WhoJoinsHasLoadedWhatTheGroupHas) {
  const ReadyMessage group{.parameters = 7, .train_samples = 1000, .validation_samples = 10};
  ReadyMessage odd = group;
  EXPECT_EQ(OddLoadWords(odd, group), "");
  odd.validation_samples = 11;

  EXPECT_EQ(OddLoadWords(odd, group), "has 11 validation samples, the group has 10");
}

TEST(JoinersTest, WhoJoinsKnowsEachEncodingThatTheGroupDoes) {
  ReadyMessage group{.encodings = {"dense", "float16", "dq"}};
  ReadyMessage older{.encodings = {"dense", "float16"}};

  EXPECT_EQ(OddLoadWords(older, group), "does not know the encoding dq, which the group does");
  EXPECT_EQ(OddLoadWords(group, older), "");
}

}  // namespace
}  // namespace tactus::job
