// What who joins a group has to have loaded, and to know.

#include "coordinator/job/joiners.h"

#include <gtest/gtest.h>

namespace tactus::job {
namespace {

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
