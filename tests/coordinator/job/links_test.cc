#include "coordinator/job/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<MemberRecord> MembersOn(const std::vector<std::string>& nodes) {
  std::vector<MemberRecord> members;
  for (const std::string& node : nodes) members.push_back({.node = node});
  return members;
}

JobRecord JobOn(const std::vector<std::string>& nodes) {
  JobRecord job;
  job.members = MembersOn(nodes);
  job.settings.kind = "kind";
  job.settings.adapt.synchronization.policy = "auto";
  return job;
}

std::vector<WorkerProgress> Rates(const std::vector<double>& rates) {
  std::vector<WorkerProgress> workers;
  for (const double rate : rates) workers.push_back({.link_bytes_per_second = rate});
  return workers;
}

class LinksTest : public testing::Test {
 protected:
  // "NODE RATE" of each that was put.
  std::vector<std::string> Note(const std::vector<std::string>& nodes,
                                const std::vector<double>& rates) {
    Actions actions;
    NoteLinks(MembersOn(nodes), Rates(rates), priors_, actions);
    std::vector<std::string> put;
    for (const PersistPrior& action : Only<PersistPrior>(actions)) {
      put.push_back(action.prior.key + " " + action.prior.prior);
    }
    return put;
  }
  double Seconds(const std::vector<std::string>& nodes,
                 TransportKind transport = TransportKind::kTcp) const {
    return ExchangeSeconds({JobOn(nodes), 1'000'000, transport}, priors_);
  }

  Priors priors_;
};

TEST_F(LinksTest, EachNodesIsKept) {
  EXPECT_THAT(Note({"a", "b"}, {1000, 2000}), ElementsAre("link-a 1000", "link-b 2000"));
}

// What they bring each other has gone over no link.
TEST_F(LinksTest, MembersOfOneNodeSayNothingOfItsLink) {
  EXPECT_THAT(Note({"a", "b", "b"}, {1000, 9000, 9000}), ElementsAre("link-a 1000"));
  EXPECT_THAT(Note({"c", "c"}, {9000, 9000}), IsEmpty());
  EXPECT_THAT(Note({"c"}, {9000}), IsEmpty());
}

TEST_F(LinksTest, WhatIsNoNewsIsNotWritten) {
  Note({"a", "b"}, {1000, 2000});

  EXPECT_THAT(Note({"a", "b"}, {1250, 1500}), IsEmpty());
  EXPECT_THAT(Note({"a", "b"}, {1251, 1499}), ElementsAre("link-a 1251", "link-b 1499"));
}

TEST_F(LinksTest, WhoToldNothingOrNonsenseLeavesWhatIsKnown) {
  Note({"a", "b"}, {1000, 2000});
  const double nan = std::numeric_limits<double>::quiet_NaN();

  EXPECT_THAT(Note({"a", "b"}, {0, nan}), IsEmpty());
  EXPECT_THAT(Note({"a", "b"}, {-1, 1e300}), IsEmpty());
  EXPECT_EQ(Seconds({"a", "b"}), 4000);
}

// 2 (n - 1) / n times 4 MB over the slowest.
TEST_F(LinksTest, AnExchangeIsOverWhenTheSlowestHasItAll) {
  Note({"a", "b", "c", "d"}, {1e6, 4e6, 4e6, 4e6});

  EXPECT_DOUBLE_EQ(Seconds({"a", "b"}), 4);
  EXPECT_DOUBLE_EQ(Seconds({"b", "c", "d"}), 4.0 / 3);
  EXPECT_DOUBLE_EQ(Seconds({"a", "b", "c", "d"}, TransportKind::kStaged), 6);
  // Each of the two on b gets a quarter of 4 MB from each of the other two, twice: 8 MB.
  EXPECT_DOUBLE_EQ(Seconds({"b", "b", "c", "d"}), 2);
}

TEST_F(LinksTest, WhatIsNotKnownIsNotGuessed) {
  Note({"a", "b"}, {1e6, 4e6});

  EXPECT_EQ(Seconds({"a", "b", "other"}), 0);
  EXPECT_EQ(Seconds({"a", "a"}), 0) << "one host";
  EXPECT_EQ(Seconds({}), 0);
  EXPECT_EQ(Seconds({"a", "b"}, TransportKind::kNccl), 0);
  EXPECT_EQ(Seconds({"a", "b"}, TransportKind::kByDevice), 0);
}

TEST_F(LinksTest, OnlyWhatIsNotKnownIsToBeMeasured) {
  const auto unknown = [this](const std::vector<std::string>& nodes) {
    std::vector<std::string> probes;
    for (const ProbeLink& probe : UnknownLinks(JobOn(nodes), priors_)) {
      probes.push_back(probe.from + " " + probe.to);
    }
    return probes;
  };
  EXPECT_THAT(unknown({"a", "a", "b", "c"}), ElementsAre("b a", "c b", "a c"));
  Note({"a", "b"}, {1e6, 4e6});
  EXPECT_THAT(unknown({"a", "a", "b", "c"}), ElementsAre("a c"));
  EXPECT_THAT(unknown({"a", "b"}), IsEmpty());
  EXPECT_THAT(unknown({"c", "c"}), IsEmpty()) << "one host";
}

// ---- A job on two nodes, a with two of its workers

class JobLinksTest : public testing::Test {
 protected:
  static JobSettings Settings(const std::string& synchronization,
                              const std::string& kind = "kind") {
    return {.workers_min = 1,
            .workers_max = 3,
            .adapt = {.batch_policy = "fixed", .synchronization = {.policy = synchronization}},
            .kind = kind};
  }

  // "FROM TO" of what is to be measured as the job gets its devices.
  std::vector<std::string> Submit(const JobRecord& job) {
    std::vector<std::string> asked;
    for (const ProbeLink& probe : Only<ProbeLink>(rig_.Step(JobSubmitted{job}))) {
      asked.push_back(probe.from + " " + probe.to);
    }
    return asked;
  }
  void Join() {
    rig_.Step(job::Join("a", 2));
    rig_.Step(job::Join("b", 1));
  }
  policies::Plan FirstPlan() {
    ReadyMessage ready = Ready();
    ready.samples_per_second = 1000;
    for (std::uint64_t worker = 1; worker < 3; ++worker) rig_.Step(Said(worker, ready));
    return Sent<GroupMessage>(rig_.Step(Said(3, ready))).at(0).plan;
  }

  Rig rig_;
};

// A step takes 0.032 s, and an exchange of 10 parameters 5.3 s at 10 bytes/s.
TEST_F(JobLinksTest, WhatIsNotKnownIsMeasuredWhileWorkersLoadAndTheFirstPlanGoesByIt) {
  Join();

  EXPECT_THAT(Submit(Job(1, Settings("auto"))), ElementsAre("b a", "a b"));
  rig_.Step(LinkProbed{.from = "b", .to = "a", .bytes_per_second = 20});
  rig_.Step(LinkProbed{.from = "a", .to = "b", .bytes_per_second = 10});

  EXPECT_EQ(rig_.priors().at("link-a").prior, "20");
  EXPECT_EQ(rig_.priors().at("link-b").prior, "10");
  EXPECT_EQ(FirstPlan().synchronization, policies::Synchronization::kPeriodic);
}

// Three times while they load, and no more once the group has its plan.
TEST_F(JobLinksTest, EachIsMeasuredAgainWhileWorkersLoad) {
  Join();
  Submit(Job(1, Settings("auto")));
  const auto again = [this](const char* from, const char* to) {
    return Only<ProbeLink>(rig_.Step(LinkProbed{.from = from, .to = to, .bytes_per_second = 1000}))
        .size();
  };
  EXPECT_EQ(again("b", "a"), 1u);
  EXPECT_EQ(again("b", "a"), 1u);
  EXPECT_EQ(again("b", "a"), 0u);
  EXPECT_EQ(again("b", "a"), 0u);
  EXPECT_EQ(again("a", "b"), 1u);
  FirstPlan();
  EXPECT_EQ(again("a", "b"), 0u);
}

TEST_F(JobLinksTest, OfSeveralMeasurementsTheFastestCounts) {
  Join();
  for (const double rate : {200.0, 1000.0, 0.0, 300.0, 1100.0}) {
    rig_.Step(LinkProbed{.from = "b", .to = "a", .bytes_per_second = rate});
  }
  EXPECT_EQ(rig_.priors().at("link-a").prior, "1000");

  rig_.Step(LinkProbed{.from = "b", .to = "unknown", .bytes_per_second = 1});
  EXPECT_FALSE(rig_.priors().contains("link-unknown")) << "a node that is deleted";
}

TEST_F(JobLinksTest, ANodeThatIsDeletedTakesItsLinkWithIt) {
  Join();
  rig_.Step(LinkProbed{.from = "b", .to = "a", .bytes_per_second = 20});
  rig_.Step(LinkProbed{.from = "a", .to = "b", .bytes_per_second = 10});
  rig_.Step(NodeUnreachable{.node = "a"});

  rig_.Step(NodeDeleted{"a"});

  EXPECT_EQ(rig_.priors().at("link-a").prior, "") << "it is dropped";
  EXPECT_EQ(rig_.priors().at("link-b").prior, "10");
  Join();
  EXPECT_THAT(Submit(Job(1, Settings("auto"))), ElementsAre("b a"));
}

TEST_F(JobLinksTest, WhatIsMeasuredTooLateOrInVainLeavesTheFirstPlanAsItWas) {
  Join();
  Submit(Job(1, Settings("auto")));
  rig_.Step(LinkProbed{.from = "b", .to = "a", .bytes_per_second = 20});
  rig_.Step(LinkProbed{.from = "a", .to = "b", .bytes_per_second = 0});

  EXPECT_EQ(FirstPlan().synchronization, policies::Synchronization::kEveryStep);
}

TEST_F(JobLinksTest, NothingIsMeasuredForAJobThatCouldNotGoByIt) {
  Join();
  EXPECT_THAT(Submit(Job(1, Settings("every_step"))), IsEmpty());
}

TEST_F(JobLinksTest, OneThatRefusesWhatOthersFoundMeasuresNothing) {
  Join();
  EXPECT_THAT(Submit(Job(1, Settings("auto", ""))), IsEmpty());
}

TEST_F(JobLinksTest, OneThatRefusesWhatOthersFoundDoesNotGoByIt) {
  Join();
  rig_.Step(LinkProbed{.from = "b", .to = "a", .bytes_per_second = 20});
  rig_.Step(LinkProbed{.from = "a", .to = "b", .bytes_per_second = 10});
  Submit(Job(1, Settings("auto", "")));

  EXPECT_EQ(FirstPlan().synchronization, policies::Synchronization::kEveryStep);
}

TEST_F(JobLinksTest, NothingIsMeasuredBesideTheRoundsOfOthers) {
  rig_.Step(job::Join("a", 2));
  rig_.Step(job::Join("b", 2));
  JobSettings one = Settings("every_step");
  one.workers_max = 1;
  Submit(Job(1, one));
  JobSettings rest = Settings("auto");
  rest.workers_min = 3;

  const Actions actions = rig_.Step(JobSubmitted{Job(2, rest)});

  std::set<std::string> nodes;
  for (const StartWorker& start : Only<StartWorker>(actions)) nodes.insert(start.node);
  EXPECT_THAT(nodes, SizeIs(2));
  EXPECT_THAT(Only<ProbeLink>(actions), IsEmpty());
}

TEST_F(LinksTest, NothingIsMeasuredForAMesh) {
  JobRecord mesh = JobOn({"a", "b"});
  ASSERT_THAT(UnknownLinks(mesh, priors_), SizeIs(2));
  mesh.settings.mesh_devices = 2;
  EXPECT_THAT(UnknownLinks(mesh, priors_), IsEmpty());
}

TEST(LinkBytesTest, WhatIsReadIsWhatWasWritten) {
  EXPECT_EQ(LinkOf(BytesOfLink(625000)), 625000);
  EXPECT_EQ(LinkOf(""), 0);
  EXPECT_EQ(LinkOf("12x"), 0);
  EXPECT_EQ(LinkOf("-12"), 0);
}

}  // namespace
}  // namespace tactus::job
