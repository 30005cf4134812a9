#include "client/render/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/client/sample_job.h"

namespace tactus::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::Job RunningJob() {
  v1::Job job = StateEvent(v1::JOB_STATE_RUNNING, "training on 2 workers").job();
  job.mutable_spec()->mutable_model()->set_builtin("bytes-lm");
  *job.mutable_progress() = SampleProgress(UnequalWorkers());
  return job;
}

v1::Decision FirstDecision() {
  v1::Decision decision;
  decision.set_plan_version(1);
  decision.set_axis(v1::AXIS_BATCH);
  decision.set_to("32,32");
  decision.set_reason("equal shares until speeds are known");
  return decision;
}

v1::Decision PeriodDecision() {
  v1::Decision decision;
  decision.set_name("projects/default/jobs/demo-1/decisions/2-synchronization");
  decision.set_plan_version(2);
  decision.set_axis(v1::AXIS_SYNCHRONIZATION);
  decision.set_round(120);
  decision.mutable_train_time()->set_seconds(63);
  decision.set_from("every_step");
  decision.set_to("periodic 8");
  v1::Quantity* transfer = decision.add_inputs();
  transfer->set_name("transfer of a round");
  transfer->set_value(0.41);
  transfer->set_unit("s");
  v1::Quantity* ratio = decision.add_inputs();
  ratio->set_name("transfer over compute");
  ratio->set_value(2.5);
  decision.set_metric("samples/s");
  decision.set_predicted_gain(0.25);
  v1::Alternative* other = decision.add_alternatives();
  other->set_value("delayed");
  other->set_predicted_gain(0.1);
  decision.set_reason("transfers take longer than steps");
  return decision;
}

v1::ListDecisionsResponse Decisions(const std::vector<v1::Decision>& decisions) {
  v1::ListDecisionsResponse response;
  for (const v1::Decision& decision : decisions) *response.add_decisions() = decision;
  return response;
}

// A paragraph on one line.
std::string Paragraph(const std::string& story, int number) {
  std::istringstream lines(story);
  std::string line;
  std::string paragraph;
  while (std::getline(lines, line)) {
    if (line.empty() && number-- == 0) return paragraph;
    if (line.empty()) {
      paragraph.clear();
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  return number == 0 ? paragraph : "";
}

TEST(StoryTest, BeginsWithTheJobAndItsPolicies) {
  v1::Job job = RunningJob();
  v1::Adapt& adapt = *job.mutable_spec()->mutable_adapt();
  adapt.set_policy(v1::ADAPT_POLICY_NONE);
  adapt.mutable_batch()->set_policy(v1::BATCH_POLICY_PROPORTIONAL);
  adapt.mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_AUTO);
  job.mutable_spec()->mutable_optimizer()->mutable_lamb();

  const std::string story = Story(job, Decisions({FirstDecision()}), 80);

  EXPECT_EQ(
      Paragraph(story, 0),
      "demo-1 trains bytes-lm with lamb on 2 workers (local cpu:0 at 1.00 and local cpu:1 at "
      "0.25). Its policies: batch proportional (shares follow the measured speeds, 32 "
      "samples a worker and step on average); synchronization auto (chosen from the measured "
      "times and the loss); aggregation average (the mean over all samples); learning rate "
      "constant (as the optimizer has it, whatever the batch); encoding dense (vectors travel "
      "as float32).");
}

TEST(StoryTest, WhatIsFrozenIsToldWithItsPolicy) {
  v1::Job job = RunningJob();
  job.mutable_spec()->mutable_adapt()->set_policy(v1::ADAPT_POLICY_NONE);
  job.mutable_spec()->mutable_adapt()->add_frozen("aggregation");

  EXPECT_THAT(Paragraph(Story(job, Decisions({}), 80), 0),
              HasSubstr("; aggregation average (the mean over all samples; frozen, so that it "
                        "stays as it is); learning rate"));
}

TEST(StoryTest, WhatIsAssumedOfOtherGroupsIsToldWithTheValuesOfDevices) {
  v1::DeviceValues values;
  values.set_useful_samples_per_second(812);
  values.set_transfer_seconds(0.5);

  EXPECT_THAT(DevicesStory(values, 200), HasSubstr("a group of one has no exchange to measure"));
  values.add_more();
  values.set_transfer_seconds_less(0.25);
  values.set_transfer_seconds_more(0.625);
  const std::string story = DevicesStory(values, 80);
  for (const char* part :
       {"teaches 812 useful samples/s", "0.5 s a round", "2 (n - 1) / n", "0.25 s", "0.625 s"}) {
    EXPECT_THAT(story, HasSubstr(part));
  }
}

TEST(StoryTest, ADecisionSaysWhenWhatWhyFromWhatAndWhatIsExpected) {
  const std::string story = Story(RunningJob(), Decisions({FirstDecision(), PeriodDecision()}), 80);

  EXPECT_EQ(Paragraph(story, 1),
            "At the start the batch was set to 32,32: equal shares until speeds are known.");
  EXPECT_EQ(Paragraph(story, 2),
            "After round 120, 1m 03s into training (decision 2-synchronization), the "
            "synchronization went from every_step to periodic 8: transfers take longer than steps. "
            "It was decided from: transfer of a "
            "round 0.41 s and transfer over compute 2.50. Predicted: +25.0 % samples/s. The "
            "alternatives: delayed +10.0 %. It is not measured yet.");
}

TEST(StoryTest, WhatWasMeasuredIsToldAndAddedUp) {
  v1::Decision first = PeriodDecision();
  first.set_measured_gain(0.2);
  v1::Decision second = PeriodDecision();
  second.set_plan_version(3);
  second.set_measured_gain(0.25);

  const std::string story = Story(RunningJob(), Decisions({first, second}), 80);

  EXPECT_THAT(Paragraph(story, 1), HasSubstr("Measured: +20.0 % samples/s."));
  EXPECT_EQ(Paragraph(story, 3),
            "It is running after 143 rounds in 34s, at 1,204 samples/s and a training loss of "
            "2.3141: training on 2 workers. 2 decisions were made; 2 are measured, multiplied "
            "+50.0 % samples/s.");
}

TEST(StoryTest, TheEffectOfWhatIsNotMeasuredIsNotClaimed) {
  v1::Decision measured = PeriodDecision();
  measured.set_measured_gain(0.2);

  const std::string story = Story(RunningJob(), Decisions({FirstDecision(), measured}), 80);

  EXPECT_THAT(Paragraph(story, 3), HasSubstr("2 decisions were made; 1 is measured, multiplied "
                                             "+20.0 % samples/s; what is not measured is not in "
                                             "that."));
}

TEST(StoryTest, ADecisionThatWasFollowedTooSoonIsNeverMeasured) {
  v1::Decision later = PeriodDecision();
  later.set_plan_version(3);

  const std::string running = Story(RunningJob(), Decisions({PeriodDecision(), later}), 80);
  const std::string over = Story(FinishedJob(), Decisions({PeriodDecision()}), 80);

  EXPECT_THAT(Paragraph(running, 1), HasSubstr("not in force for long enough to measure"));
  EXPECT_THAT(Paragraph(running, 2), HasSubstr("not measured yet"));
  EXPECT_THAT(Paragraph(over, 1), HasSubstr("not in force for long enough to measure"));
}

TEST(StoryTest, ADecisionThatPromisesNothingIsNotMeasured) {
  const std::string story = Story(RunningJob(), Decisions({FirstDecision()}), 80);

  EXPECT_THAT(Paragraph(story, 1), Not(HasSubstr("easured:")));
  EXPECT_THAT(Paragraph(story, 1), Not(HasSubstr("Predicted")));
}

TEST(StoryTest, EndsWithTheResult) {
  const std::string story = Story(FinishedJob(), Decisions({FirstDecision()}), 80);

  EXPECT_EQ(Paragraph(story, 2),
            "It succeeded after 812 rounds in 1m 00s, at 625 samples/s, with a training loss of "
            "1.8123 and a validation loss of 1.9011: 60 s are over. 1 decision was made; none is "
            "measured.");
}

TEST(StoryTest, EndsInWordsThatFitTheState) {
  v1::Job job = FinishedJob();
  job.clear_result();
  job.set_state_reason("by the user");
  job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(Paragraph(Story(job, Decisions({}), 80), 1), HasSubstr("It was cancelled after 143"));
  job.set_state(v1::JOB_STATE_FAILED);
  EXPECT_THAT(Paragraph(Story(job, Decisions({}), 80), 1), HasSubstr("It failed after 143"));
  job.set_state(v1::JOB_STATE_STARTING);
  EXPECT_THAT(Paragraph(Story(job, Decisions({}), 80), 1), HasSubstr("It is starting after 143"));
}

TEST(StoryTest, SkippedUpdatesAreToldWhereItStands) {
  v1::Job job = RunningJob();
  job.mutable_progress()->set_skipped_rounds(1);
  job.mutable_progress()->set_repeated_passes(2);

  EXPECT_THAT(Paragraph(Story(job, Decisions({}), 80), 1),
              AllOf(HasSubstr("Skipped: 1 update, as numbers were not finite."),
                    HasSubstr("Repeated: 2 passes in pieces, as the device's memory was short.")));
}

TEST(StoryTest, WhatBecameOfTheGroupIsToldWhereItStands) {
  v1::Job job = RunningJob();
  job.set_regroups(2);
  job.set_regroup_reason("worker 3 on node b was ended by signal 9 (SIGKILL)");
  job.set_resizes(1);
  job.set_resize_reason("from 2 to 3 workers without a stop: worker 4 on node c joins");
  job.set_rollback_samples(1200);
  job.set_rollback_reason("the training loss rose from 2 to 9 at round 200");

  EXPECT_THAT(
      Paragraph(Story(job, Decisions({}), 1000), 1),
      AllOf(HasSubstr(" Its workers went on without one that was lost 2 times, the last time "
                      "because worker 3 on node b was ended by signal 9 (SIGKILL). "),
            HasSubstr("Its group was changed without a stop once, last from 2 to 3 workers"),
            HasSubstr("It went back, and passed over 1,200 samples, as the training loss rose")));
}

TEST(StoryTest, AJobWithoutDecisionsIsToldToo) {
  v1::Job job = StateEvent(v1::JOB_STATE_QUEUED, "waiting for devices").job();
  job.mutable_spec()->mutable_model()->set_torchscript("m.pt");

  const std::string story = Story(job, Decisions({}), 80);

  EXPECT_THAT(Paragraph(story, 0),
              HasSubstr("demo-1 trains the TorchScript model m.pt with sgd on no worker yet."));
  EXPECT_EQ(Paragraph(story, 1), "It is queued: waiting for devices. No decision was made yet.");
}

v1::Decision Measured(v1::Axis axis, int seconds, double gain) {
  v1::Decision decision = PeriodDecision();
  decision.set_axis(axis);
  decision.mutable_train_time()->set_seconds(seconds);
  decision.set_measured_gain(gain);
  return decision;
}

// 13 about batches, of which one is not measured and six lost, then one period.
v1::ListDecisionsResponse ManyDecisions() {
  std::vector<v1::Decision> decisions;
  for (int i = 0; i < 12; ++i) {
    decisions.push_back(Measured(v1::AXIS_BATCH, 10 * i, i < 6 ? -0.02 : 0.06));
  }
  decisions.push_back(Measured(v1::AXIS_BATCH, 120, 0));
  decisions.back().clear_measured_gain();
  decisions.push_back(Measured(v1::AXIS_SYNCHRONIZATION, 130, 0.5));
  return Decisions(decisions);
}

TEST(StoryTest, ManyDecisionsAreCountedFirst) {
  const std::string story = Story(RunningJob(), ManyDecisions(), 80);

  EXPECT_EQ(Paragraph(story, 1),
            "14 decisions were made; batch 13, of which 12 are measured: +2.0 % on average, 6 "
            "below 0; synchronization 1, of which 1 is measured: +50.0 % on average, 0 below 0. "
            "--last, --axis and --since choose among them.");
  EXPECT_THAT(Paragraph(Story(RunningJob(), Decisions({PeriodDecision()}), 80), 1),
              testing::StartsWith("After round 120"));
}

TEST(StoryTest, SomeOfManyAreToldAndAllAreCounted) {
  const std::string story = Story(RunningJob(), ManyDecisions(), 80, {.last = 2});

  EXPECT_THAT(Paragraph(story, 1), testing::EndsWith("below 0. Told of are 2."));
  EXPECT_THAT(Paragraph(story, 2), HasSubstr("2m 00s into training"));
  EXPECT_THAT(Paragraph(story, 3), HasSubstr("2m 10s into training"));
  EXPECT_THAT(Paragraph(story, 4), HasSubstr("14 decisions were made; 13 are measured"));
}

TEST(StoryTest, DecisionsAreChosenByAxisTimeAndNumber) {
  const v1::ListDecisionsResponse all = ManyDecisions();

  EXPECT_EQ(Chosen(all, {}).decisions_size(), 14);
  EXPECT_EQ(Chosen(all, {.axis = v1::AXIS_BATCH}).decisions_size(), 13);
  EXPECT_EQ(Chosen(all, {.since = Seconds(100)}).decisions_size(), 4);
  EXPECT_EQ(Chosen(all, {.axis = v1::AXIS_BATCH, .since = Seconds(100)}).decisions_size(), 3);
  const v1::ListDecisionsResponse last = Chosen(all, {.last = 1, .axis = v1::AXIS_BATCH});
  ASSERT_EQ(last.decisions_size(), 1);
  EXPECT_EQ(last.decisions(0).train_time().seconds(), 120);
  EXPECT_EQ(Chosen({}, {.last = 3}).decisions_size(), 0);
}

TEST(StoryTest, NoLineIsWiderThanTheTerminalOrThanIsPleasant) {
  const v1::ListDecisionsResponse decisions = Decisions({FirstDecision(), PeriodDecision()});
  for (const std::size_t columns : {30, 80, 400}) {
    std::istringstream lines(Story(RunningJob(), decisions, columns));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), std::min(columns, kStoryColumnsMax)) << line;
    }
  }
}

TEST(StoryTest, WhatOthersWroteCannotSteerTheTerminal) {
  v1::Decision decision = PeriodDecision();
  decision.set_reason("\x1b[2Jgone\nnew line");
  decision.set_to("\x1b]0;title");

  EXPECT_THAT(Story(RunningJob(), Decisions({decision}), 80), Not(HasSubstr("\x1b")));
}

TEST(StoryTest, WhatValidationsHaveComeToIsToldAtTheEnd) {
  v1::Job job = RunningJob();
  v1::ValidationProgress& validation = *job.mutable_progress()->mutable_validation();
  validation.set_count(12);
  validation.set_seconds(3);
  validation.mutable_best()->set_rounds(100);
  validation.mutable_best()->set_loss(1.5);
  validation.mutable_newest()->set_rounds(120);
  validation.mutable_newest()->set_loss(1.75);

  std::string story = Story(job, {}, 100);
  std::ranges::replace(story, '\n', ' ');
  EXPECT_THAT(story,
              HasSubstr("12 validations took 3.0s: the best loss was 1.5000 after 100 rounds and "
                        "the newest 1.7500 after 120 rounds."));
}

}  // namespace
}  // namespace tactus::client
