// Groups of members on devices that lose one of them, in every phase of their life, and the next
// group: of fewer members, as many and more. All of a group abort their communicators and go on by
// a new id, in the same process and with what is in their devices' memory.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/nccl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/failing_transport.h"
#include "tests/agent/engine/nccl_double/on_devices.h"
#include "tests/agent/engine/survivor.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::ConnectedTransport;
using collective::NcclMeeting;
using collective::Progress;
using collective::Transport;
using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;
using testing::Each;
using testing::HasSubstr;

constexpr int kMembers = 3;
constexpr int kVictim = 1;
constexpr int kNewcomers = 2;
constexpr std::uint64_t kSamples = 81;      // of whole rounds and windows of three members
constexpr std::uint64_t kRoundsBefore = 1;  // that a group applies before its loss

// Where the members of a group are when it loses one.
enum class Moment {
  kMeeting,     // NCCL's init waits for the one
  kTakingOver,  // those behind take over the donor's state
  kComputing,   // no collective is under way but what rounds overlap with
  kCombining,   // the collectives of a round wait for the one's device
  kValidating,  // between two rounds
  kComparing,   // likewise
};

struct Phase {
  std::string name{};
  Moment moment = Moment::kComputing;
  int at = 0;  // the batch of its round, or the collective of the take-over
  Plan plan{};
  EngineOptions options = {.train_samples = kSamples,
                           .optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.5},
                           .stop = {.epochs = 2}};
};

Phase Validating() {
  Phase phase{.name = "Validation", .moment = Moment::kValidating};
  phase.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 2, .samples = 10};
  return phase;
}

Phase Comparing() {
  Phase phase{.name = "Comparison", .moment = Moment::kComparing};
  phase.options.comparison = {.share = 1, .least_between = std::chrono::milliseconds(10)};
  return phase;
}

std::vector<Phase> AskedPhases() {
  const Plan window{.synchronization = Synchronization::kPeriodic, .period = 3};
  const Plan delayed{.synchronization = Synchronization::kDelayed, .period = 4};
  return {{.name = "BackwardPass"},
          {.name = "WindowOfLocalSteps", .at = 1, .plan = window},
          {.name = "DelayedBackwardPass", .plan = delayed},
          Validating(),
          Comparing()};
}

std::vector<Phase> Phases() {
  const Plan adasum{.aggregation = Aggregation::kAdasum};
  const Plan window{.synchronization = Synchronization::kPeriodic, .period = 3};
  const Plan delayed{.synchronization = Synchronization::kDelayed, .period = 4};
  Plan adasum_of_windows = window;
  adasum_of_windows.aggregation = Aggregation::kAdasum;
  std::vector<Phase> phases = AskedPhases();
  for (const Phase& phase : std::vector<Phase>{
           {.name = "Meeting", .moment = Moment::kMeeting},
           {.name = "TakeOverOfNumbers", .moment = Moment::kTakingOver, .at = 1},
           {.name = "TakeOverOfTheOptimizer", .moment = Moment::kTakingOver, .at = 2},
           {.name = "TakeOverOfParameters", .moment = Moment::kTakingOver, .at = 3},
           {.name = "EveryStep", .moment = Moment::kCombining},
           {.name = "EveryStepByAdasum", .moment = Moment::kCombining, .plan = adasum},
           {.name = "Combination", .moment = Moment::kCombining, .plan = window},
           {.name = "CombinationByAdasum", .moment = Moment::kCombining, .plan = adasum_of_windows},
           {.name = "DelayedRounds", .moment = Moment::kCombining, .plan = delayed}}) {
    phases.push_back(phase);
  }
  return phases;
}

void PrintTo(const Phase& phase, std::ostream* out) { *out << phase.name; }

// What happens in a group, to whom its rank says.
struct Events {
  std::function<void(NcclMeeting&)> meeting = [](NcclMeeting&) {};
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)> connected =
      [](std::unique_ptr<Transport> transport) { return transport; };
  std::function<void(Moment, RoundEngine&, Transport&)> at = [](Moment, RoundEngine&, Transport&) {
  };
};

// Three members and some newcomers, each on a device of its own.
class PhasesOnDevices : public OnDevices {
 protected:
  explicit PhasesOnDevices(Phase phase) : phase_(std::move(phase)) {
    for (int i = 0; i < kMembers + kNewcomers; ++i) {
      all_.push_back(std::make_unique<Survivor>(
          phase_.options, cuda::OpenDevice("cuda:" + std::to_string(i)).device));
      if (i >= kMembers) all_.back()->SetParameters(7);
    }
    nccl_double::TearAborted();
  }

  Survivor* at(int i) { return all_[static_cast<std::size_t>(i)].get(); }

  // A group of these, each on a thread of its own, from its meeting on to its end or its loss.
  std::vector<Outcome> Train(const std::vector<Survivor*>& members, const Events& events = {}) {
    const int size = static_cast<int>(members.size());
    begun_at_ = members[0]->member().rounds;
    transports_.clear();
    transports_.resize(members.size());
    std::vector<NcclMeeting> meetings = Meetings(size);
    std::vector<Outcome> outcomes(members.size(), Outcome::kGroupLost);
    collective::OnEveryRank(size, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      Prepare(meetings[index], members[index]->device());
      events.meeting(meetings[index]);
      ConnectedTransport connected = ConnectNccl(std::move(meetings[index]));
      if (connected.transport == nullptr) return;
      transports_[index] = events.connected(std::move(connected.transport));
      outcomes[index] = Live(members, *transports_[index], events);
    });
    killer_ = {};
    // All at once: who leaves may wait for the others.
    collective::OnEveryRank(size,
                            [&](int rank) { transports_[static_cast<std::size_t>(rank)].reset(); });
    ++generation_;
    nccl_double::Release();
    return outcomes;
  }

  // The three whose group is to be lost. Of those who are to take over one has no rounds yet.
  std::vector<Survivor*> Three() {
    if (phase_.moment == Moment::kTakingOver) {
      EXPECT_THAT(Train({at(0), at(1)}, Asking()), Each(Outcome::kRegrouped));
    }
    return {at(0), at(1), at(2)};
  }

  // Their group loses the one.
  std::vector<Outcome> Lose(const std::vector<Survivor*>& three) {
    gathered_ = 0;
    struck_ = false;
    passed_.fill(0);
    return Train(three, Killing());
  }

  // The one asks for another group.
  Events Asking() {
    const bool edge = phase_.moment == Moment::kValidating || phase_.moment == Moment::kComparing;
    return {.at = [this, when = edge ? phase_.moment : Moment::kComputing](
                      Moment moment, RoundEngine& engine, Transport& transport) {
      if (moment != when || transport.rank() != kVictim || !IsDue(engine)) return;
      engine.RequestStop("one more", StopKind::kRegroup);
    }};
  }

  // The one dies: its peers find its connections closed, and its device takes part in nothing.
  Events Killing() {
    switch (phase_.moment) {
      case Moment::kMeeting:
        return {.meeting = DieInMeeting};
      case Moment::kTakingOver:
        return {.connected = [this](std::unique_ptr<Transport> transport) {
          if (transport->rank() != kVictim) return transport;
          return std::unique_ptr<Transport>(
              std::make_unique<FailingTransport>(std::move(transport), phase_.at));
        }};
      case Moment::kComputing:
      case Moment::kCombining:
        return {.at = [this](Moment moment, RoundEngine& engine, Transport& transport) {
          if (moment == Moment::kComputing && IsTheBatch(engine, transport)) Gather();
        }};
      case Moment::kValidating:
      case Moment::kComparing:
        return {.at = [this](Moment moment, RoundEngine&, Transport& transport) {
          if (moment == phase_.moment && transport.rank() == kVictim) transport.Abort("killed");
        }};
    }
    return {};
  }

  // They came to the end of training together, and of all that were ever trained each sample was
  // used once an epoch.
  void ExpectAlikeAtTheEnd(const std::vector<Survivor*>& members) {
    for (Survivor* const each : members) {
      EXPECT_EQ(each->reason(), "2 epochs completed");
      EXPECT_EQ(each->parameters(), members[0]->parameters());
      EXPECT_EQ(each->member().rounds, members[0]->member().rounds);
      EXPECT_EQ(each->State().ledger, members[0]->State().ledger);
    }
    std::vector<Survivor*> everybody;
    for (const auto& each : all_) everybody.push_back(each.get());
    EXPECT_EQ(TimesUsed(everybody, kSamples), std::vector<std::uint64_t>(kSamples, 2));
  }

  const Phase phase_;

 private:
  static void Prepare(NcclMeeting& meeting, const cuda::Device& device) {
    meeting.device = device.cuda_index().value();
    meeting.compute_stream = device.stream();
    meeting.now = SurvivorTime;
    meeting.meet_limit = Seconds(1e6);
    meeting.grace = Seconds(0.05);
    meeting.must_end = [](const std::string& reason) { ADD_FAILURE() << reason; };
  }

  // The others wait for its init by then.
  static void DieInMeeting(NcclMeeting& meeting) {
    if (meeting.rank != kVictim) return;
    const auto inits = [] { return nccl_double::Calls("ncclCommInitRankConfig"); };
    meeting.exchange = [exchange = meeting.exchange, inits,
                        before = inits()](const std::string& own) {
      exchange(own);
      EXPECT_TRUE(Eventually([&] { return inits() >= before + kMembers - 1; }));
      return std::vector<std::string>();
    };
  }

  // What a worker's life does with its engine, as far as it takes the group.
  Outcome Live(const std::vector<Survivor*>& members, Transport& transport, const Events& events) {
    std::vector<std::uint64_t> rounds;
    if (begun_at_ > 0) {
      for (Survivor* const each : members) rounds.push_back(each->member().rounds);
    }
    Plan plan = phase_.plan;
    plan.batch_sizes.assign(members.size(), 3);
    Survivor& member = *members[static_cast<std::size_t>(transport.rank())];
    const auto before_step = [&](RoundEngine& engine, Transport&) {
      events.at(Moment::kComputing, engine, transport);
      return true;
    };
    const auto after_step = [&](RoundEngine& engine) {
      if (engine.comparison_due()) {
        events.at(Moment::kComparing, engine, transport);
        engine.Compare(member.Hash());
      }
      if (!engine.validation_due()) return;
      events.at(Moment::kValidating, engine, transport);
      std::vector<float> losses = {1, 10};
      const Completion completion = transport.StartAllReduceSum(losses)->Wait();
      if (completion.progress == Progress::kFailed) return engine.LoseGroup(completion.reason);
      engine.TakeValidation({.loss = 1, .samples = 10, .end = SurvivorTime()});
    };
    return *member.TrainIn(transport, plan, rounds, before_step, after_step);
  }

  bool IsDue(const RoundEngine& engine) const {
    return engine.rounds() >= begun_at_ + kRoundsBefore;
  }
  // True once a member.
  bool IsTheBatch(const RoundEngine& engine, const Transport& transport) {
    return IsDue(engine) && passed_[static_cast<std::size_t>(transport.rank())]++ == phase_.at;
  }

  // All members compute the same batch, until the last one has come and the one is struck.
  void Gather() {
    if (++gathered_ == kMembers) {
      Strike();
      struck_ = true;
    }
    while (!struck_) std::this_thread::yield();
  }

  void Strike() {
    Transport& victim = *transports_[kVictim];
    if (phase_.moment == Moment::kComputing) return victim.Abort("killed");
    nccl_double::StallRank(kVictim);
    killer_ = std::jthread([this, &victim] {
      const auto wait = [this] {
        return transports_[0]->awaiting().collective && transports_[2]->awaiting().collective;
      };
      EXPECT_TRUE(Eventually(wait));
      victim.Abort("killed");
    });
  }

  std::vector<std::unique_ptr<Survivor>> all_;
  // Of the present group.
  std::vector<std::unique_ptr<Transport>> transports_;
  std::uint64_t begun_at_ = 0;  // rounds that its first member had applied
  std::array<int, kMembers> passed_{};
  std::atomic<int> gathered_ = 0;
  std::atomic<bool> struck_ = false;
  std::jthread killer_;
};

// ---- One is lost

enum class Next { kFewer = 0, kAsMany = 1, kMore = 2 };  // newcomers in the place of the one

class LostInPhaseTest : public PhasesOnDevices,
                        public testing::WithParamInterface<std::tuple<Phase, Next>> {
 protected:
  LostInPhaseTest() : PhasesOnDevices(std::get<Phase>(GetParam())) {}
};

// Each abort ends only when all have begun, as those of one node may.
TEST_P(LostInPhaseTest, TheOthersAbortTogetherAndGoOnByANewId) {
  const std::vector<Survivor*> three = Three();
  const int met = phase_.moment == Moment::kMeeting ? kMembers - 1 : kMembers;
  const int ended = nccl_double::Calls("ncclCommFinalize");
  nccl_double::MeetInAbort(met);

  EXPECT_THAT(Lose(three), Each(Outcome::kGroupLost));

  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), met);
  EXPECT_EQ(nccl_double::Calls("ncclCommFinalize"), ended);
  EXPECT_EQ(nccl_double::Communicators(), 0);
  const int ids = nccl_double::Calls("ncclGetUniqueId");
  std::vector<Survivor*> members = {three[0], three[2]};
  for (int i = 0; i < static_cast<int>(std::get<Next>(GetParam())); ++i) {
    members.push_back(at(kMembers + i));
  }

  EXPECT_THAT(Train(members), Each(Outcome::kFinished));

  EXPECT_EQ(nccl_double::Calls("ncclGetUniqueId"), ids + 1);
  ExpectAlikeAtTheEnd(members);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Phase, Next>>& test) {
  constexpr std::array<const char*, 3> kNames = {"Fewer", "AsMany", "More"};
  const auto& [phase, next] = test.param;
  return phase.name + kNames[static_cast<std::size_t>(next)];
}

INSTANTIATE_TEST_SUITE_P(Phases, LostInPhaseTest,
                         testing::Combine(testing::ValuesIn(Phases()),
                                          testing::Values(Next::kFewer, Next::kAsMany,
                                                          Next::kMore)),
                         NameOf);

// ---- All live on

class AskedInPhaseTest : public PhasesOnDevices, public testing::WithParamInterface<Phase> {
 protected:
  AskedInPhaseTest() : PhasesOnDevices(GetParam()) {}
};

TEST_P(AskedInPhaseTest, ANewcomerIsTakenInWhereNothingIsAborted) {
  EXPECT_THAT(Train({at(0), at(1), at(2)}, Asking()), Each(Outcome::kRegrouped));
  EXPECT_EQ(nccl_double::Communicators(), 0);
  const std::vector<Survivor*> members = {at(0), at(1), at(2), at(3)};

  EXPECT_THAT(Train(members), Each(Outcome::kFinished));

  EXPECT_EQ(nccl_double::Calls("ncclGetUniqueId"), 2);
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 0);
  ExpectAlikeAtTheEnd(members);
}

INSTANTIATE_TEST_SUITE_P(Phases, AskedInPhaseTest, testing::ValuesIn(AskedPhases()),
                         [](const auto& phase) { return phase.param.name; });

class LossesInPhaseTest : public PhasesOnDevices, public testing::WithParamInterface<Phase> {
 protected:
  LossesInPhaseTest() : PhasesOnDevices(Endless(GetParam())) {}

  static Phase Endless(Phase phase) {
    phase.options.stop = {.epochs = 1000};
    return phase;
  }
};

// What is made once, at the first use, is there after the first ones.
TEST_P(LossesInPhaseTest, LeaveNothingOnTheDevices) {
  const auto held = [] {
    return std::vector<std::size_t>{cuda_double::DeviceBytes(), cuda_double::PinnedBytes(),
                                    static_cast<std::size_t>(cuda_double::Streams()),
                                    static_cast<std::size_t>(cuda_double::Events())};
  };
  const std::vector<Survivor*> three = Three();
  Lose(three);
  Lose(three);
  const std::vector<std::size_t> before = held();

  EXPECT_THAT(Lose(three), Each(Outcome::kGroupLost));

  EXPECT_EQ(held(), before);
  EXPECT_EQ(nccl_double::Communicators(), 0);
}

INSTANTIATE_TEST_SUITE_P(Phases, LossesInPhaseTest, testing::ValuesIn(Phases()),
                         [](const auto& phase) { return phase.param.name; });

// ---- The last resort

class HungAbortTest : public PhasesOnDevices {
 protected:
  HungAbortTest() : PhasesOnDevices(Validating()) {}
};

TEST_F(HungAbortTest, WhoseAbortHangsHasToEndAndTheOthersGoOnWithoutIt) {
  constexpr int kHung = 2;
  std::string ended;
  Events events = Killing();
  events.meeting = [&](NcclMeeting& meeting) {
    if (meeting.rank != kHung) return;
    meeting.abort_limit = Seconds(0.05);
    meeting.must_end = [&ended](const std::string& reason) { ended = reason; };
  };
  nccl_double::HangAbort(kHung);

  EXPECT_THAT(Train({at(0), at(1), at(2)}, events), Each(Outcome::kGroupLost));

  EXPECT_THAT(ended, HasSubstr("the process has to end"));
  const std::vector<Survivor*> members = {at(0), at(3)};
  EXPECT_THAT(Train(members), Each(Outcome::kFinished));
  ExpectAlikeAtTheEnd(members);
}

}  // namespace
}  // namespace tactus::engine
