#include "coordinator/job/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A cluster of one-device nodes "0", "1" and so on, and jobs on it.
class View {
 public:
  explicit View(int nodes) {
    for (int i = 0; i < nodes; ++i) AddFree(DeviceKind::kCpu, {});
  }

  void AddFree(DeviceKind kind, NodeTraits traits) {
    const NodeTraits& kept = Keep(std::move(traits));
    const std::string name = std::to_string(view_.free.size());
    view_.free.push_back({.place = {.node = name, .device = "d"}, .kind = kind, .traits = &kept});
  }

  void Waits(std::uint64_t id, JobSettings settings) {
    view_.waiting.push_back({.job = JobId{id}, .settings = &Keep(std::move(settings))});
    std::ranges::sort(view_.waiting, [](const WaitingJob& a, const WaitingJob& b) {
      return ComesBefore(*a.settings, a.job, *b.settings, b.job);
    });
  }

  struct Holding {
    std::size_t devices = 1;
    std::size_t unusable = 0;  // of them
    bool steady = true;
    bool leaving = false;
    bool in_place = false;  // it can change its size without a stop
    bool grows = true;      // and so now
    std::size_t given_back = 0;
    std::vector<std::size_t> joining{};  // of the devices, whose workers are to join
  };
  void Holds(std::uint64_t id, JobSettings settings, const Holding& holding) {
    GroupedJob group{.job = JobId{id},
                     .settings = &Keep(std::move(settings)),
                     .leaving = holding.leaving,
                     .movable = !holding.leaving,
                     .steady = holding.steady && !holding.leaving,
                     .shrinks = holding.in_place,
                     .in_place = holding.in_place,
                     .grows = holding.in_place && holding.grows};
    const HeldDevice device{
        .kind = DeviceKind::kCpu, .traits = &Keep(NodeTraits{}), .usable = true};
    group.devices.assign(holding.devices, device);
    group.given_back.assign(holding.given_back, device);
    for (std::size_t i = 0; i < holding.devices; ++i) {
      group.devices[i].worker = WorkerId{100 * id + i};
    }
    for (std::size_t i = 0; i < holding.unusable; ++i) group.devices[i].usable = false;
    for (const std::size_t i : holding.joining) group.devices[i].joining = true;
    view_.groups.push_back(group);
  }

  // The job has been the head for a while.
  void IsPatient(std::uint64_t id) { view_.patient = JobId{id}; }

  Schedule Make() const { return MakeSchedule(view_); }

 private:
  const JobSettings& Keep(JobSettings settings) {
    settings_.push_back(std::make_unique<JobSettings>(std::move(settings)));
    return *settings_.back();
  }
  const NodeTraits& Keep(NodeTraits traits) {
    traits_.push_back(std::make_unique<NodeTraits>(std::move(traits)));
    return *traits_.back();
  }

  ScheduleView view_;
  std::vector<std::unique_ptr<JobSettings>> settings_;
  std::vector<std::unique_ptr<NodeTraits>> traits_;
};

JobSettings Workers(std::uint32_t min, std::uint32_t max, std::int32_t priority = 0) {
  return {.name = "job", .workers_min = min, .workers_max = max, .priority = priority};
}

// "2:3" for job 2 with three devices.
std::vector<std::string> Starts(const Schedule& schedule) {
  std::vector<std::string> starts;
  for (const Schedule::Grant& grant : schedule.starts) {
    starts.push_back(std::to_string(grant.job.value) + ":" + std::to_string(grant.members.size()));
  }
  return starts;
}

std::vector<std::uint64_t> Displaced(const Schedule& schedule) {
  std::vector<std::uint64_t> jobs;
  for (const Schedule::Displaced& displaced : schedule.displaced) {
    jobs.push_back(displaced.job.value);
  }
  return jobs;
}

TEST(ScheduleTest, AJobAloneGetsAllThatItMayHave) {
  View view(5);
  view.Waits(1, Workers(1, 3));

  EXPECT_THAT(Starts(view.Make()), ElementsAre("1:3"));
}

TEST(ScheduleTest, EveryJobGetsItsMinimumBeforeAnyGetsMoreAndEqualsShareTheRest) {
  View view(7);
  view.Waits(1, Workers(1, 100));
  view.Waits(2, Workers(2, 100));

  EXPECT_THAT(Starts(view.Make()), ElementsAre("1:3", "2:4"));
}

TEST(ScheduleTest, WhatIsLeftGoesToTheHighestPriorityFirst) {
  View view(7);
  view.Waits(1, Workers(1, 100));
  view.Waits(2, Workers(2, 100, 5));

  EXPECT_THAT(Starts(view.Make()), ElementsAre("2:6", "1:1"));
}

TEST(ScheduleTest, AGangIsWholeOrNotStarted) {
  View view(3);
  view.Waits(1, Workers(4, 4));

  const Schedule schedule = view.Make();

  EXPECT_THAT(schedule.starts, IsEmpty());
  EXPECT_EQ(schedule.head, JobId{1});
}

TEST(ScheduleTest, DevicesThatAWaitingHeadCannotUseYetAreLentAtTheMinimum) {
  View view(3);
  view.Waits(1, Workers(4, 4));
  view.Waits(2, Workers(2, 3));
  EXPECT_THAT(view.Make().starts, IsEmpty());

  view.IsPatient(1);

  EXPECT_THAT(Starts(view.Make()), ElementsAre("2:2"));
}

TEST(ScheduleTest, WhoBorrowedGivesBackOnceTheHeadCanStart) {
  View view(2);
  view.Waits(1, Workers(4, 4));
  view.Holds(2, Workers(2, 3), {.devices = 2});

  const Schedule schedule = view.Make();

  EXPECT_THAT(schedule.starts, IsEmpty());
  EXPECT_THAT(Displaced(schedule), ElementsAre(2));
}

TEST(ScheduleTest, NobodyIsDisplacedInVain) {
  View view(1);
  view.Waits(1, Workers(4, 4));
  view.Holds(2, Workers(2, 3), {.devices = 2});

  EXPECT_THAT(view.Make().displaced, IsEmpty());
}

TEST(ScheduleTest, LowerPrioritiesMakeRoomTheLastInTheQueueFirstAndNoMoreThanNeeded) {
  View view(0);
  view.Waits(9, Workers(2, 2, 10));
  view.Holds(1, Workers(2, 2), {.devices = 2});
  view.Holds(2, Workers(2, 2), {.devices = 2});
  view.Holds(3, Workers(1, 1), {.devices = 1});

  EXPECT_THAT(Displaced(view.Make()), ElementsAre(2));
}

TEST(ScheduleTest, HigherAndEqualPrioritiesAtTheirMinimumAreLeftAlone) {
  View view(0);
  view.Waits(9, Workers(1, 1));
  view.Holds(1, Workers(2, 2), {.devices = 2});
  view.Holds(2, Workers(1, 8, 3), {.devices = 8});

  EXPECT_THAT(view.Make().displaced, IsEmpty());
}

TEST(ScheduleTest, AnElasticGroupShrinksForALaterJobOnceItIsSteady) {
  View view(0);
  view.Waits(9, Workers(1, 1));
  view.Holds(1, Workers(2, 8), {.devices = 4, .steady = false});
  EXPECT_THAT(view.Make().displaced, IsEmpty());
  EXPECT_TRUE(view.Make().awaits_steady);

  View later(0);
  later.Waits(9, Workers(1, 1));
  later.Holds(1, Workers(2, 8), {.devices = 4});

  EXPECT_THAT(Displaced(later.Make()), ElementsAre(1));
}

TEST(ScheduleTest, AGroupThatWouldNotGetItsDevicesBackShrinksToNoLessThanItsMin) {
  View view(0);
  view.Waits(9, Workers(1, 1));
  view.Holds(1, Workers(2, 8), {.devices = 4, .unusable = 2});
  EXPECT_THAT(view.Make().displaced, IsEmpty());

  View other(0);
  other.Waits(9, Workers(1, 1));
  other.Holds(1, Workers(2, 8), {.devices = 4, .unusable = 1});

  EXPECT_THAT(Displaced(other.Make()), ElementsAre(1));
}

TEST(ScheduleTest, AGroupThatWouldNotGetItsDevicesBackDoesNotGrow) {
  View view(1);
  view.Holds(1, Workers(3, 9), {.devices = 3, .unusable = 2});

  EXPECT_THAT(view.Make().displaced, IsEmpty());
}

TEST(ScheduleTest, DevicesOnTheirWayAreWaitedForAndNotLent) {
  View view(1);
  view.Waits(1, Workers(2, 2));
  view.Waits(2, Workers(1, 1));
  view.IsPatient(1);
  view.Holds(3, Workers(1, 1), {.devices = 1, .leaving = true});

  const Schedule schedule = view.Make();

  EXPECT_THAT(schedule.starts, IsEmpty());
  EXPECT_THAT(schedule.displaced, IsEmpty());
}

TEST(ScheduleTest, FreeDevicesThatNobodyWaitsForGoToTheFirstThatCanGrow) {
  View view(2);
  view.Holds(1, Workers(1, 2), {.devices = 2});
  view.Holds(2, Workers(1, 9), {.devices = 1});
  view.Holds(3, Workers(1, 9), {.devices = 1});

  EXPECT_THAT(Displaced(view.Make()), ElementsAre(2));
}

TEST(ScheduleTest, NobodyGrowsOntoWhatTheQueueCouldUse) {
  View view(2);
  view.Waits(5, Workers(3, 3));
  view.Holds(1, Workers(1, 9), {.devices = 1});

  EXPECT_THAT(view.Make().displaced, IsEmpty());
}

TEST(ScheduleTest, WhoTrainsGivesBackWhatIsNeededAndKeepsItsMin) {
  View view(1);
  view.Waits(9, Workers(3, 3, 1));
  view.Holds(1, Workers(2, 8), {.devices = 5, .unusable = 1, .steady = false, .in_place = true});

  const Schedule schedule = view.Make();

  EXPECT_THAT(schedule.displaced, IsEmpty());
  ASSERT_EQ(schedule.reductions.size(), 1u);
  EXPECT_EQ(schedule.reductions[0].job, JobId{1});
  EXPECT_THAT(schedule.reductions[0].workers, ElementsAre(WorkerId{104}, WorkerId{103}));
}

TEST(ScheduleTest, WhoCannotKeepItsMinIsDisplaced) {
  View view(0);
  view.Waits(9, Workers(3, 3, 1));
  view.Holds(1, Workers(2, 8), {.devices = 4, .in_place = true});

  EXPECT_THAT(Displaced(view.Make()), ElementsAre(1));
  EXPECT_THAT(view.Make().reductions, IsEmpty());
}

TEST(ScheduleTest, WhoIsToJoinGoesBeforeThoseWhoTrain) {
  View view(0);
  view.Waits(9, Workers(2, 2, 1));
  view.Holds(1, Workers(2, 8), {.devices = 4, .in_place = true, .joining = {1}});

  const Schedule schedule = view.Make();

  ASSERT_EQ(schedule.reductions.size(), 1u);
  EXPECT_THAT(schedule.reductions[0].workers, ElementsAre(WorkerId{101}, WorkerId{103}));
}

TEST(ScheduleTest, WhoIsToJoinDoesNotCountForTheMin) {
  View view(0);
  view.Waits(9, Workers(1, 1, 1));
  // The head cannot use the device of the one that is to join.
  view.Holds(1, Workers(3, 8), {.devices = 4, .unusable = 1, .in_place = true, .joining = {0}});

  EXPECT_THAT(Displaced(view.Make()), ElementsAre(1));
  EXPECT_THAT(view.Make().reductions, IsEmpty());
}

TEST(ScheduleTest, SeveralGiveBackUntilItIsEnough) {
  View view(0);
  view.Waits(9, Workers(3, 3));
  view.Holds(1, Workers(1, 8), {.devices = 3, .in_place = true});
  view.Holds(2, Workers(1, 8), {.devices = 3, .in_place = true});

  const Schedule schedule = view.Make();

  ASSERT_EQ(schedule.reductions.size(), 2u);
  EXPECT_EQ(schedule.reductions[0].job, JobId{2});
  EXPECT_EQ(schedule.reductions[0].workers.size(), 2u);
  EXPECT_EQ(schedule.reductions[1].workers.size(), 1u);
}

TEST(ScheduleTest, WhatIsGivenBackIsWaitedForAndCountsForItsJobNoMore) {
  View view(0);
  view.Waits(9, Workers(2, 2));
  view.Holds(1, Workers(1, 8), {.devices = 2, .in_place = true, .given_back = 2});

  EXPECT_THAT(view.Make().reductions, IsEmpty());
  EXPECT_THAT(view.Make().displaced, IsEmpty());
}

TEST(ScheduleTest, WhoTrainsGrowsOntoAllThatNobodyWaitsForUpToItsMax) {
  View view(4);
  view.Holds(1, Workers(1, 3), {.devices = 1, .unusable = 1, .in_place = true});
  view.Holds(2, Workers(1, 9), {.devices = 1, .in_place = true});

  const Schedule schedule = view.Make();

  EXPECT_THAT(schedule.displaced, IsEmpty());
  ASSERT_EQ(schedule.growths.size(), 1u) << "one job at a time";
  EXPECT_EQ(schedule.growths[0].job, JobId{1});
  EXPECT_EQ(schedule.growths[0].members.size(), 2u);
}

TEST(ScheduleTest, WhoCannotGrowYetIsAskedLater) {
  View view(1);
  view.Holds(1, Workers(1, 3), {.devices = 1, .in_place = true, .grows = false});

  EXPECT_THAT(view.Make().growths, IsEmpty());
  EXPECT_THAT(view.Make().displaced, IsEmpty());
  EXPECT_TRUE(view.Make().awaits_steady);
}

TEST(ScheduleTest, SelectorsAndTaintsDecideWhichNodesFit) {
  View view(1);
  view.AddFree(DeviceKind::kCpu, {.labels = {{"rack", "7"}}, .taints = {"team=vision"}});
  view.AddFree(DeviceKind::kCpu, {.labels = {{"rack", "8"}}});
  JobSettings picky = Workers(1, 9);
  picky.selector = {{"rack", "7"}};
  view.Waits(1, picky);
  EXPECT_THAT(view.Make().starts, IsEmpty());

  picky.tolerations = {"team"};
  view.Waits(0, picky);

  const Schedule schedule = view.Make();
  ASSERT_THAT(Starts(schedule), ElementsAre("0:1"));
  EXPECT_EQ(schedule.starts[0].members[0].node, "1");
}

JobSettings OnAny(std::uint32_t min, std::uint32_t max) {
  JobSettings settings = Workers(min, max);
  settings.device = DeviceKind::kAny;
  return settings;
}

std::vector<std::string> PlacesOf(const Schedule::Grant& grant) {
  std::vector<std::string> nodes;
  for (const MemberRecord& member : grant.members) nodes.push_back(member.node);
  return nodes;
}

TEST(ScheduleTest, OnlyAJobThatTakesAnyDeviceGetsBothKinds) {
  View view(2);
  view.AddFree(DeviceKind::kCuda, {});
  view.Waits(1, OnAny(1, 9));
  ASSERT_THAT(Starts(view.Make()), ElementsAre("1:3"));

  for (const DeviceKind kind : {DeviceKind::kStandard, DeviceKind::kCpu}) {
    View other(2);
    other.AddFree(DeviceKind::kCuda, {});
    JobSettings settings = Workers(1, 9);
    settings.device = kind;
    other.Waits(1, settings);
    EXPECT_THAT(Starts(other.Make()), ElementsAre("1:2"));  // a view's standard is cpu
  }
}

TEST(ScheduleTest, AJobThatTakesAnyDeviceGetsGpusFirst) {
  View view(3);
  view.AddFree(DeviceKind::kCuda, {});
  view.AddFree(DeviceKind::kCuda, {});
  view.Waits(1, OnAny(1, 3));

  const Schedule schedule = view.Make();

  ASSERT_EQ(schedule.starts.size(), 1u);
  EXPECT_THAT(PlacesOf(schedule.starts[0]), ElementsAre("0", "3", "4"));
}

TEST(ScheduleTest, ATolerationWithAValueIsForThatValueAlone) {
  const NodeTraits traits{.taints = {"team=vision"}};

  EXPECT_FALSE(
      Accepts({.tolerations = {"team=speech"}}, DeviceKind::kCpu, traits, DeviceKind::kCpu));
  EXPECT_TRUE(
      Accepts({.tolerations = {"team=vision"}}, DeviceKind::kCpu, traits, DeviceKind::kCpu));
}

}  // namespace
}  // namespace tactus::job
