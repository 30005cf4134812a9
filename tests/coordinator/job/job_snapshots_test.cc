// Snapshots of a job that trains: they come one by one, and stay whatever becomes of their group.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/job/snapshots.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::string PathOf(const std::string& seconds) { return "snapshots/" + seconds + ".safetensors"; }

class JobSnapshotsTest : public testing::Test {
 protected:
  explicit JobSnapshotsTest(JobRecord job = Job(1)) : rig_(std::move(job)) { rig_.ToRunning(); }

  Actions Store(const std::string& seconds, const std::string& sha256, std::uint64_t worker = 1) {
    return rig_.Step(
        ArtifactStored{.job = JobId{1},
                       .artifact = {.path = PathOf(seconds), .size_bytes = 9, .sha256 = sha256},
                       .worker = WorkerId{worker}});
  }
  // The second is killed, the others obey.
  void LoseGroup(std::uint64_t first = 1) {
    rig_.Step(WorkerExited{.worker = WorkerId{first + 1}, .exit_code = -1, .signal = 9});
    rig_.Step(WorkerExited{.worker = WorkerId{first}, .exit_code = -1, .signal = 15});
    rig_.Step(WorkerExited{.worker = WorkerId{first + 2}, .exit_code = -1, .signal = 15});
  }
  // The rest after a loss is over.
  void StartAgain() {
    ASSERT_THAT(Only<StartWorker>(rig_.StepAt(rig_.seconds() + 6, Ticked{})), SizeIs(3));
  }
  // Hashes, by their seconds.
  std::vector<std::string> Kept() const {
    std::vector<std::string> hashes;
    for (const ArtifactRecord& snapshot : SnapshotsOf(rig_.record())) {
      hashes.push_back(snapshot.sha256);
    }
    return hashes;
  }

  Rig rig_;
};

class JobSnapshotsOnceTest : public JobSnapshotsTest {
 protected:
  JobSnapshotsOnceTest() : JobSnapshotsTest(JobOnce(1)) {}
};

TEST_F(JobSnapshotsTest, OneIsDurableAndThenPublishedWhileTheJobTrains) {
  const std::uint64_t announced = rig_.record().announced;
  const Actions actions = Store("0.000", "first");

  ASSERT_THAT(actions, SizeIs(2));
  ASSERT_TRUE(std::holds_alternative<PersistJob>(actions[0]));
  ASSERT_TRUE(std::holds_alternative<PublishSnapshot>(actions[1]));
  EXPECT_EQ(std::get<PublishSnapshot>(actions[1]).snapshot.sha256, "first");
  EXPECT_EQ(rig_.record().announced, announced) << "a change of the job would be refused";
  EXPECT_THAT(Kept(), ElementsAre("first"));
}

TEST_F(JobSnapshotsOnceTest, AJobThatFailsKeepsThem) {
  Store("0.000", "first");
  Store("1.004", "second");

  LoseGroup();

  EXPECT_EQ(rig_.record().state, JobState::kFailed);
  EXPECT_THAT(Kept(), ElementsAre("first", "second"));
}

TEST_F(JobSnapshotsTest, TheyOutliveTheirGroupAndTheNewerOneOfANameTakesThePlace) {
  Store("0.000", "first");
  Store("1.004", "second");

  LoseGroup();
  EXPECT_EQ(rig_.record().state, JobState::kQueued);
  EXPECT_THAT(Kept(), ElementsAre("first", "second"));
  StartAgain();
  EXPECT_THAT(Kept(), ElementsAre("first", "second"));
  Store("1.004", "again", 4);

  EXPECT_THAT(Kept(), ElementsAre("first", "again"));
  LoseGroup(4);
  EXPECT_THAT(Kept(), ElementsAre("first", "again"));
}

TEST_F(JobSnapshotsTest, ALostGroupsAreTakenWheneverTheyCome) {
  rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 9});
  Store("0.000", "while the others leave");
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 15});
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});
  EXPECT_EQ(rig_.record().state, JobState::kQueued);
  Store("1.004", "while it rests");
  StartAgain();
  Store("2.008", "while the next one trains");

  EXPECT_THAT(Kept(),
              ElementsAre("while the others leave", "while it rests", "while the next one trains"));
  EXPECT_THAT(rig_.record().ending.artifacts, IsEmpty());
}

TEST_F(JobSnapshotsTest, NothingElseOfALostGroupIsOfUseNorAnythingOfAStranger) {
  LoseGroup();
  const auto store = [&](const std::string& path, std::uint64_t worker) {
    return rig_.Step(ArtifactStored{.job = JobId{1},
                                    .artifact = {.path = path, .size_bytes = 9, .sha256 = "late"},
                                    .worker = WorkerId{worker}});
  };
  EXPECT_THAT(Only<PersistJob>(store("model.pt", 1)), IsEmpty());
  StartAgain();

  EXPECT_THAT(Only<PersistJob>(store("model.pt", 1)), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(store(PathOf("1.004"), 77)), IsEmpty());
  EXPECT_THAT(rig_.record().ending.artifacts, IsEmpty());
}

// What is late is older than what has the name by now.
TEST_F(JobSnapshotsTest, ALateOneOfTheSameNameGivesWay) {
  LoseGroup();
  StartAgain();
  Store("1.004", "of the second", 4);
  Store("1.004", "late", 1);

  EXPECT_THAT(Kept(), ElementsAre("of the second"));
}

TEST_F(JobSnapshotsTest, ASuspendedJobKeepsThemWhenItGoesOn) {
  Store("0.000", "first");
  rig_.Step(JobPaused{.job = JobId{1}});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    FinishedMessage finished = Finished(rank);
    finished.suspended = true;
    finished.files.clear();
    if (rank == 0) finished.files = {kCheckpointFile};
    rig_.Step(Said(rank + 1, finished));
  }
  rig_.Step(ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 1, .sha256 = "c"}});
  Store("1.004", "second");
  for (const std::uint64_t worker : {1, 2, 3}) rig_.Step(WorkerExited{.worker = WorkerId{worker}});
  ASSERT_EQ(rig_.record().state, JobState::kPaused);
  Store("2.008", "third");

  EXPECT_THAT(Kept(), UnorderedElementsAre("first", "second", "third"));
  rig_.Step(JobResumed{.job = JobId{1}});
  ASSERT_EQ(rig_.record().state, JobState::kStarting);
  EXPECT_THAT(Kept(), UnorderedElementsAre("first", "second", "third"));
}

TEST_F(JobSnapshotsTest, ACoordinatorThatRestartsHasThem) {
  Store("0.000", "first");
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  Store("1.004", "second");

  EXPECT_THAT(Kept(), ElementsAre("first", "second"));
  LoseGroup();
  rig_.Restart();

  EXPECT_THAT(Kept(), ElementsAre("first", "second"));
}

// They are in the result of the group that made them, and were there before it was asked for.
TEST_F(JobSnapshotsTest, AResultThatNamesThemWaitsForNoneThatIsThere) {
  Store("0.000", "first");
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    FinishedMessage finished = Finished(rank);
    if (rank == 0) finished.files = {PathOf("0.000")};
    rig_.Step(Said(rank + 1, finished));
  }

  EXPECT_EQ(rig_.record().state, JobState::kSucceeded);
  ASSERT_TRUE(rig_.record().result);
  EXPECT_THAT(rig_.record().result->artifacts,
              ElementsAre(testing::Field(&ArtifactRecord::sha256, "first")));
  EXPECT_THAT(Kept(), ElementsAre("first"));
}

TEST(SnapshotsOfTest, ThoseOfTheNewestGroupComeLastAndTheFirstToComeGo) {
  JobRecord record = Job(1);
  KeepSnapshot(record, {.path = PathOf("70.000")});
  KeepSnapshot(record, {.path = PathOf("9.500")});
  record.ending.artifacts = {
      {.path = PathOf("10.000")}, {.path = "model.pt"}, {.path = PathOf("9.700")}};
  const auto paths = [&record] {
    std::vector<std::string> all;
    for (const ArtifactRecord& one : SnapshotsOf(record)) all.push_back(one.path);
    return all;
  };
  EXPECT_THAT(paths(),
              ElementsAre(PathOf("70.000"), PathOf("9.500"), PathOf("9.700"), PathOf("10.000")));

  for (std::size_t i = 0; i < protocol::kSnapshotsMax - 3; ++i) {
    KeepSnapshot(record, {.path = PathOf(std::to_string(20 + i) + ".500")});
  }

  const std::vector<std::string> kept = paths();
  ASSERT_THAT(kept, SizeIs(protocol::kSnapshotsMax));
  EXPECT_EQ(kept.front(), PathOf("9.500"));
  EXPECT_EQ(kept.back(), PathOf("10.000"));
  KeepSnapshot(record, {.path = PathOf("5000.000")});
  KeepSnapshot(record, {.path = PathOf("5001.000")});
  KeepSnapshot(record, {.path = PathOf("5002.000")});
  EXPECT_THAT(record.snapshots, SizeIs(protocol::kSnapshotsMax));
}

}  // namespace
}  // namespace tactus::job
