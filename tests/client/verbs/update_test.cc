#include "client/verbs/update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Paths(const JobUpdate& update) {
  return {update.request.update_mask().paths().begin(), update.request.update_mask().paths().end()};
}

v1::Job LabelledJob() {
  v1::Job job;
  job.set_etag("e1");
  (*job.mutable_labels())["team"] = "vision";
  (*job.mutable_labels())["zone"] = "a";
  job.mutable_spec()->mutable_adapt()->add_frozen("batch");
  return job;
}

TEST(JobUpdateTest, EachOptionIsAPathOfTheMask) {
  const UpdateCommand command = {
      .name = "demo-1",
      .overrides = {{"spec.stop.epochs", "5"}, {"adapt.batch.policy", "fixed"}},
      .priority = 7};

  const JobUpdate update = BuildUpdate(command, {});

  ASSERT_THAT(update.errors, IsEmpty());
  EXPECT_THAT(Paths(update),
              ElementsAre("spec.adapt.batch.policy", "spec.priority", "spec.stop.epochs"));
  EXPECT_EQ(update.request.name(), "demo-1");
  EXPECT_EQ(update.request.spec().stop().epochs(), 5u);
  EXPECT_EQ(update.request.spec().adapt().batch().policy(), v1::BATCH_POLICY_FIXED);
  EXPECT_EQ(update.request.spec().priority(), 7);
  EXPECT_EQ(update.request.etag(), "");
  EXPECT_FALSE(NeedsJob(command));
}

TEST(JobUpdateTest, APathWithinAnotherIsLeftOut) {
  const JobUpdate update = BuildUpdate(
      {.overrides = {{"stop", "{epochs: 5}"}, {"stop.time", "3m"}, {"stop.time", "4m"}}}, {});

  EXPECT_THAT(Paths(update), ElementsAre("spec.stop"));
  EXPECT_EQ(update.request.spec().stop().epochs(), 5u);
  EXPECT_EQ(update.request.spec().stop().time().seconds(), 240);
}

TEST(JobUpdateTest, LabelsAreChangedOneByOneUnderTheJobsEtag) {
  const UpdateCommand command = {.labels = {{"team", "speech"}, {"new", "1"}},
                                 .labels_removed = {"zone"}};

  const JobUpdate update = BuildUpdate(command, LabelledJob());

  EXPECT_TRUE(NeedsJob(command));
  EXPECT_THAT(Paths(update), ElementsAre("labels"));
  EXPECT_EQ(update.request.labels().size(), 2u);
  EXPECT_EQ(update.request.labels().at("team"), "speech");
  EXPECT_EQ(update.request.labels().at("new"), "1");
  EXPECT_EQ(update.request.etag(), "e1");
}

TEST(JobUpdateTest, FrozenAxesAreAddedAndTakenAway) {
  const JobUpdate frozen =
      BuildUpdate({.freeze = {"learning_rate", "batch"}, .etag = "mine"}, LabelledJob());
  const JobUpdate free = BuildUpdate({.unfreeze = {"batch"}}, LabelledJob());

  EXPECT_THAT(Paths(frozen), ElementsAre("spec.adapt.frozen"));
  EXPECT_THAT(frozen.request.spec().adapt().frozen(), ElementsAre("batch", "learning_rate"));
  EXPECT_EQ(frozen.request.etag(), "mine");
  EXPECT_THAT(free.request.spec().adapt().frozen(), IsEmpty());
  EXPECT_THAT(Paths(free), ElementsAre("spec.adapt.frozen"));
}

TEST(JobUpdateTest, MistakesAreNamed) {
  EXPECT_THAT(BuildUpdate({}, {}).errors, ElementsAre(HasSubstr("nothing is to be changed")));
  EXPECT_THAT(BuildUpdate({.overrides = {{"spec.stp.epochs", "5"}}}, {}).errors,
              ElementsAre(HasSubstr("--set: stp: unknown key; did you mean 'stop'?")));
  EXPECT_THAT(BuildUpdate({.overrides = {{"stop.epochs", "many"}}}, {}).errors,
              ElementsAre("--set: stop.epochs: 'many' is not a whole number"));
  EXPECT_THAT(BuildUpdate({.overrides = {{"stop..epochs", "1"}}}, {}).errors,
              ElementsAre(HasSubstr("--set stop..epochs: ")));
}

}  // namespace
}  // namespace tactus::client
