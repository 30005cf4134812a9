#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "tests/client/verbs/command_lines.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SweepTest : public VerbsTest {
 protected:
  SweepTest() {
    std::ofstream(file_) << "name: demo\noptimizer: {sgd: {learning_rate: 0.1}}\n";
    coordinator_.create_job = [this](const v1::CreateJobRequest& request, v1::Job* job) {
      (request.validate_only() ? checked_ : requests_).push_back(request);
      if (request.spec().seed() == 13) {
        return runtime::ToGrpc(
            runtime::InvalidFields({{.field = "seed", .description = "found 13"}}));
      }
      if (!request.validate_only() && requests_.size() == refused_at_) {
        return runtime::ToGrpc(absl::InternalError("store: the disk is full"));
      }
      job->set_name("projects/default/jobs/demo-" + std::to_string(requests_.size()));
      *job->mutable_labels() = request.labels();
      return grpc::Status::OK;
    };
  }

  const std::string file_ = folder_.path() + "/j.yaml";
  std::size_t refused_at_ = 0;  // which job, from 1; 0: none
  std::vector<v1::CreateJobRequest> checked_;
  std::vector<v1::CreateJobRequest> requests_;
};

TEST_F(SweepTest, EachCombinationIsAJobWithItsValuesAsLabels) {
  const Answered swept =
      Tactus({"sweep", file_, "--over", "learning_rate=0.01,0.03", "--over", "seed=1,2", "--name",
              "s1", "--label", "team=vision", "--priority", "3"});

  EXPECT_EQ(swept.code, ExitCode::kOk) << swept.err;
  ASSERT_EQ(requests_.size(), 4u);
  EXPECT_EQ(checked_.size(), 4u);
  EXPECT_EQ(requests_[2].spec().optimizer().sgd().learning_rate(), 0.03);
  EXPECT_EQ(requests_[2].spec().seed(), 1u);
  EXPECT_EQ(requests_[2].spec().priority(), 3);
  EXPECT_EQ(requests_[2].request_id(), "s1-2");
  const auto& labels = requests_[2].labels();
  EXPECT_EQ(labels.size(), 4u);
  EXPECT_EQ(labels.at("sweep"), "s1");
  EXPECT_EQ(labels.at("team"), "vision");
  EXPECT_EQ(labels.at("over/optimizer.sgd.learning_rate"), "0.03");
  EXPECT_EQ(labels.at("over/seed"), "1");
  EXPECT_THAT(swept.out, HasSubstr("JOB     STATE        LEARNING_RATE  SEED  ROUNDS"));
  EXPECT_THAT(swept.err, HasSubstr("sweep s1 submitted: 4 jobs; tactus get sweep s1 shows"));
}

TEST_F(SweepTest, WhetherTheyShareAProcessIsSaid) {
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed=1,2", "--together"}).err,
              HasSubstr("each trains in a process of its own: workers.max: found 65536, allowed "
                        "is 1"));
  std::ofstream(file_) << "name: demo\nworkers: {max: 1}\nmodel: {builtin: bytes-lm}\n";
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed=1,2", "--together", "--dry-run"}).err,
              HasSubstr("share one with others of the sweep, in one process"));
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed=1", "--together"}).err,
              Not(HasSubstr("process")));
}

TEST_F(SweepTest, OfProgramsItIsSaidWhatToDoInstead) {
  std::ofstream(file_) << "name: demo\nprogram: {command: [python3, train.py]}\n";

  const Answered swept =
      Tactus({"sweep", file_, "--over", "adapt.batch.per_worker=8,16", "--together", "--dry-run"});

  EXPECT_EQ(swept.code, ExitCode::kOk) << swept.err;
  EXPECT_THAT(swept.err, HasSubstr("each trains in a process of its own: program: its code is a "
                                   "process; one program trains several models together by "
                                   "tactus_train.fused (docs/python.md)"));
}

TEST_F(SweepTest, ThoseThatCanShareAProcessDoSoUnlessTheyAreToBeApart) {
  const Answered unable = Tactus({"sweep", file_, "--over", "seed=1,2"});
  EXPECT_EQ(requests_.back().labels().count("array"), 0u);
  EXPECT_THAT(unable.err, Not(HasSubstr("process"))) << "nobody asked for it";

  std::ofstream(file_) << "name: demo\nworkers: {max: 1}\nmodel: {builtin: bytes-lm}\n";
  const Answered able = Tactus({"sweep", file_, "--over", "seed=1,2", "--name", "s1"});
  EXPECT_EQ(requests_.back().labels().at("array"), "s1");
  EXPECT_THAT(able.err, HasSubstr("in one process; --apart keeps them apart"));

  const Answered apart = Tactus({"sweep", file_, "--over", "seed=1,2", "--apart"});
  EXPECT_EQ(requests_.back().labels().count("array"), 0u);
  EXPECT_THAT(apart.err, Not(HasSubstr("process")));
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed=1,2", "--apart", "--together"}).err,
              HasSubstr("excludes"));

  Tactus({"sweep", file_, "--over", "seed=1,2", "--label", "array=ours"});
  EXPECT_EQ(requests_.back().labels().at("array"), "ours");
}

TEST_F(SweepTest, AValueThatIsRefusedLeavesNothingBehind) {
  const Answered swept = Tactus({"sweep", file_, "--over", "seed=1,13,2"});
  EXPECT_EQ(swept.code, ExitCode::kUsage);
  EXPECT_EQ(swept.err, "tactus: " + file_ + ": seed: found 13\n");
  EXPECT_TRUE(requests_.empty());

  EXPECT_EQ(Tactus({"sweep", file_, "--over", "seed=1,many"}).code, ExitCode::kUsage);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(SweepTest, ADryRunSubmitsNothing) {
  const Answered swept = Tactus({"sweep", file_, "--over", "seed=1,2,3", "--dry-run"});
  EXPECT_EQ(swept.code, ExitCode::kOk);
  EXPECT_THAT(swept.err, HasSubstr("3 jobs, all valid; nothing was submitted"));
  EXPECT_TRUE(requests_.empty());
}

// As of the standard input: there is nothing to be read a second time.
TEST_F(SweepTest, TheFileIsReadOnce) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = "name: demo\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);

  const Answered swept =
      Tactus({"sweep", "/dev/fd/" + std::to_string(ends[0]), "--over", "seed=1,2,3"});
  ::close(ends[0]);

  EXPECT_EQ(swept.code, ExitCode::kOk) << swept.err;
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(SweepTest, WhatIsMissingIsSubmittedByTheSameCommand) {
  refused_at_ = 2;
  const Answered swept = Tactus({"sweep", file_, "--over", "seed=1,2,3", "--name", "s1"});
  EXPECT_EQ(swept.code, ExitCode::kGeneric);
  EXPECT_THAT(swept.err, HasSubstr("sweep s1: 1 of 3 jobs submitted; the same command with --name "
                                   "s1 submits the others"));
}

TEST_F(SweepTest, WrongWordsAreSaid) {
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed"}).err, HasSubstr("FIELD=VALUE,VALUE"));
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "nosuch=1"}).err, HasSubstr("is not set in"));
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed=1", "--name", "a_b"}).err,
              HasSubstr("--name: found \"a_b\""));
  const std::string ten = "=1,2,3,4,5,6,7,8,9,10";
  EXPECT_THAT(Tactus({"sweep", file_, "--over", "seed" + ten, "--over", "priority" + ten, "--over",
                      "learning_rate" + ten})
                  .err,
              HasSubstr("found 1,000 combinations, allowed are 256"));
  EXPECT_TRUE(checked_.empty());
}

TEST_F(SweepTest, ItsJobsAreShownTheBestFirst) {
  v1::Job better = FinishedJob();
  better.set_name("projects/default/jobs/demo-9");
  (*better.mutable_labels())["over/seed"] = "4";
  v1::Job queued = StateEvent(v1::JOB_STATE_QUEUED, "").job();
  (*queued.mutable_labels())["over/seed"] = "5";
  coordinator_.sweep = {queued, better};

  EXPECT_EQ(Printed({"get", "sweep", "s1", "-o", "name"}), "demo-9\ndemo-1\n");
  EXPECT_THAT(Printed({"get", "sweep", "s1"}), HasSubstr("JOB     STATE      SEED  ROUNDS"));

  coordinator_.sweep.clear();
  const Answered none = Tactus({"get", "sweep", "s1"});
  EXPECT_EQ(none.code, ExitCode::kNotFound);
  EXPECT_THAT(none.err, HasSubstr("there is no job of a sweep s1"));
}

}  // namespace
}  // namespace tactus::client
