#include "client/render/progress_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/client/sample_job.h"

namespace tactus::client {
namespace {

using Style = ProgressViewOptions::Style;

Instant At(double seconds) { return Instant(Seconds(seconds)); }

TEST(ProgressViewTest, LinesComeEveryFewSeconds) {
  ProgressView view({.style = Style::kLines});
  const v1::JobEvent event = ProgressEvent(SampleProgress(UnequalWorkers()));
  const std::string line =
      "epoch 0 (12.0 %)  round 143  loss 2.3141  1,204 samples/s  elapsed 34s  ETA 26s  batch "
      "47,12  idle "
      "2,31 %\n";

  EXPECT_EQ(view.Show(event, At(0)), line);
  EXPECT_EQ(view.Show(event, At(4.9)), "");
  EXPECT_EQ(view.Show(event, At(5)), line);
}

TEST(ProgressViewTest, EveryChangeOfStateIsALine) {
  ProgressView view({});

  EXPECT_EQ(view.Show(StateEvent(v1::JOB_STATE_QUEUED, "waiting for 2 devices"), At(0)),
            "job demo-1 queued: waiting for 2 devices\n");
  EXPECT_EQ(view.Show(StateEvent(v1::JOB_STATE_QUEUED, "waiting for 2 devices"), At(1)), "");
  EXPECT_EQ(view.Show(StateEvent(v1::JOB_STATE_RUNNING, ""), At(2)), "job demo-1 running\n");
}

// Its reason ends the messages on standard error, and is not said twice.
TEST(ProgressViewTest, AFailureIsLeftToTheErrors) {
  ProgressView view({});

  EXPECT_EQ(view.Show(StateEvent(v1::JOB_STATE_FAILED, "no such file"), At(0)), "");
  EXPECT_EQ(ProgressView({}).Show(StateEvent(v1::JOB_STATE_CANCELLED, "enough"), At(0)),
            "job demo-1 cancelled: enough\n");
}

TEST(ProgressViewTest, EveryDecisionIsALineWithWhatItChanges) {
  ProgressView view({});

  EXPECT_EQ(view.Show(DecisionEvent(1, {32, 32}, "the start"), At(0)),
            "decision: batch 32,32: the start\n");
  EXPECT_EQ(view.Show(DecisionEvent(2, {47, 17}, "shares follow\nspeed"), At(1)),
            "decision: batch 32,32 → 47,17: shares follow speed\n");
  EXPECT_EQ(view.Show(DecisionEvent(2, {47, 17}, "shares follow\nspeed"), At(2)), "");
}

TEST(ProgressViewTest, ADecisionAfterProgressSaysFromWhichPlan) {
  ProgressView view({});
  view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0));

  EXPECT_EQ(view.Show(DecisionEvent(2, {30, 29}, ""), At(1)), "decision: batch 47,12 → 30,29\n");
}

constexpr const char* kBlock =
    "  0 local cpu:0 at 1.00      401 samples/s  batch    47  idle   2.0 %  ####################\n"
    "  1 local cpu:1 at 0.25      100 samples/s  batch    12  idle  31.0 %  #####...............\n"
    "epoch 0 (12.0 %)  round 143  loss 2.3141  1,204 samples/s  elapsed 34s  ETA 26s\n";

TEST(ProgressViewTest, TheBlockIsRedrawnInPlace) {
  ProgressView view({.style = Style::kBlock});
  const v1::JobEvent event = ProgressEvent(SampleProgress(UnequalWorkers()));

  EXPECT_EQ(view.Show(event, At(0), 100), kBlock);
  EXPECT_EQ(view.Show(event, At(0.1), 100), std::string("\x1b[3A\r\x1b[J") + kBlock);
}

TEST(ProgressViewTest, DecisionsScrollAboveTheBlock) {
  ProgressView view({.style = Style::kBlock});
  view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0), 100);

  EXPECT_EQ(view.Show(DecisionEvent(2, {30, 29}, "faster"), At(1), 100),
            std::string("\x1b[3A\r\x1b[Jdecision: batch 47,12 → 30,29: faster\n") + kBlock);
}

TEST(ProgressViewTest, ADecisionSaysWhichChoicesChange) {
  ProgressView view({.style = Style::kLines});
  v1::JobEvent event = DecisionEvent(1, {8, 8}, "start");
  v1::Plan& plan = *event.mutable_decision();
  plan.set_synchronization("every_step");
  plan.set_period(1);
  plan.set_aggregation("average");
  view.Show(event, At(0));

  plan.set_version(2);
  plan.set_synchronization("periodic");
  plan.set_period(8);
  plan.set_reason("transfers are long");
  EXPECT_EQ(view.Show(event, At(1)), "decision: every_step → periodic 8: transfers are long\n");

  plan.set_version(3);
  plan.set_aggregation("adasum");
  plan.set_batch_sizes(0, 12);
  plan.set_reason("orthogonal");
  EXPECT_EQ(view.Show(event, At(2)), "decision: batch 8,8 → 12,8, average → adasum: orthogonal\n");
}

TEST(ProgressViewTest, TheBlockVanishesWhenTheJobIsOver) {
  ProgressView view({.style = Style::kBlock});
  view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0), 100);

  EXPECT_EQ(view.Show(StateEvent(v1::JOB_STATE_SUCCEEDED, "20 epochs"), At(1), 100),
            "\x1b[3A\r\x1b[Jjob demo-1 succeeded: 20 epochs\n");
}

TEST(ProgressViewTest, ABlockThatWasLeftStays) {
  ProgressView view({.style = Style::kBlock});
  const v1::JobEvent event = ProgressEvent(SampleProgress(UnequalWorkers()));
  view.Show(event, At(0), 100);

  view.Leave();

  EXPECT_EQ(view.Show(event, At(1), 100), kBlock);
}

TEST(ProgressViewTest, NoLineOfTheBlockIsWiderThanTheTerminal) {
  ProgressView view({.style = Style::kBlock});

  const std::string text = view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0), 40);

  EXPECT_EQ(text,
            "  0 local cpu:0 at 1.00      401 sample\n"
            "  1 local cpu:1 at 0.25      100 sample\n"
            "epoch 0 (12.0 %)  round 143  loss 2.314\n");
}

TEST(ProgressViewTest, ColourMarksIdleWorkersAndTheJob) {
  ProgressView view({.style = Style::kBlock, .colour = true});

  const std::string text = view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0), 30);

  EXPECT_EQ(text,
            "  0 local cpu:0 at 1.00      \n"
            "\x1b[33m  1 local cpu:1 at 0.25      \x1b[0m\n"
            "\x1b[1mepoch 0 (12.0 %)  round 143  \x1b[0m\n");
}

TEST(ProgressViewTest, NothingToDivideByDrawsEmptyBars) {
  ProgressView view({.style = Style::kBlock});

  const std::string text = view.Show(ProgressEvent(SampleProgress({{0, 1, 0, 0, 0}})), At(0), 100);

  EXPECT_NE(text.find("  ....................\n"), std::string::npos);
}

TEST(ProgressViewTest, JsonIsOneObjectALine) {
  ProgressView view({.style = Style::kJson});

  const std::string line = view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0));
  const nlohmann::json event = nlohmann::json::parse(line);

  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(event["progress"]["rounds"], "143");
  EXPECT_EQ(event["progress"]["epoch"], "0");
  EXPECT_EQ(event["progress"]["workers"][1]["batch_size"], 12);
}

TEST(ProgressViewTest, StatesHaveNames) {
  EXPECT_EQ(StateName(v1::JOB_STATE_SUCCEEDED), "succeeded");
  EXPECT_EQ(StateName(static_cast<v1::JobState>(99)), "unknown");
  EXPECT_TRUE(IsOver(v1::JOB_STATE_CANCELLED));
  EXPECT_FALSE(IsOver(v1::JOB_STATE_STOPPING));
}

TEST(ProgressViewTest, DurationsBeyondOurRangeAreCut) {
  google::protobuf::Duration duration;
  duration.set_seconds(315'576'000'000);

  EXPECT_EQ(FromProto(duration), std::chrono::seconds(9'000'000'000));
}

v1::JobProgress ValidatedProgress(std::uint64_t count, double loss, bool best) {
  v1::JobProgress progress = SampleProgress(UnequalWorkers());
  v1::ValidationProgress& validation = *progress.mutable_validation();
  validation.set_count(count);
  v1::ValidationPoint& newest = *validation.mutable_newest();
  newest.set_rounds(140);
  newest.set_loss(loss);
  newest.set_accuracy(0.5);
  newest.set_samples(1000);
  newest.set_seconds(0.25);
  validation.mutable_best()->set_rounds(best ? 140 : 7);
  return progress;
}

TEST(ProgressViewTest, EveryValidationIsALineOnce) {
  ProgressView view({.style = Style::kLines});
  view.Show(ProgressEvent(SampleProgress(UnequalWorkers())), At(0));

  EXPECT_EQ(view.Show(ProgressEvent(ValidatedProgress(1, 2.5, true)), At(1)),
            "validation: loss 2.5000, accuracy 50.0 % (1,000 samples), after 140 rounds, the best "
            "so far; took 0.2s\n");
  EXPECT_EQ(view.Show(ProgressEvent(ValidatedProgress(1, 2.5, true)), At(2)), "");
  EXPECT_EQ(view.Show(ProgressEvent(ValidatedProgress(2, 2.75, false)), At(3)),
            "validation: loss 2.7500, accuracy 50.0 % (1,000 samples), after 140 rounds; took "
            "0.2s\n");
}

TEST(ProgressViewTest, TheLastValidationIsALineBeforeTheEnd) {
  ProgressView view({.style = Style::kLines});
  v1::JobEvent event = StateEvent(v1::JOB_STATE_SUCCEEDED, "");
  *event.mutable_job()->mutable_progress() = ValidatedProgress(3, 2.5, false);

  EXPECT_EQ(view.Show(event, At(0)),
            "validation: loss 2.5000, accuracy 50.0 % (1,000 samples), after 140 rounds; took "
            "0.2s\njob demo-1 succeeded\n");
}

}  // namespace
}  // namespace tactus::client
