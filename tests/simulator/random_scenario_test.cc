#include "simulator/random_scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

constexpr std::uint64_t kSeedsPerTest = 50;
constexpr std::uint64_t kTests = 20;

std::string RepeatedBy(std::uint64_t seed) {
  return "repeat with: tactus simulate --random --seed " + std::to_string(seed);
}

// A thousand small clusters with random jobs and faults, every checker on.
class RandomScenarioTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomScenarioTest, NoPromiseIsBroken) {
  for (std::uint64_t i = 0; i < kSeedsPerTest; ++i) {
    const std::uint64_t seed = GetParam() * kSeedsPerTest + i + 1;
    SCOPED_TRACE(RepeatedBy(seed));

    const Outcome outcome = Simulate(RandomScenario(seed));

    EXPECT_EQ(outcome.violations_total, 0u);
    EXPECT_EQ(outcome.unfinished, "");
    for (const Violation& violation : outcome.violations) {
      ADD_FAILURE() << "at " << violation.seconds << " s: " << violation.what;
    }
    for (const JobOutcome& job : outcome.jobs) {
      EXPECT_TRUE(job::IsFinal(job.state)) << job.name;
      EXPECT_FALSE(job.reason.empty()) << job.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomScenarioTest, testing::Range(std::uint64_t{0}, kTests));

// What the seeds are for does happen in them.
TEST(RandomScenarioCoverageTest, SeedsReachTheRareStates) {
  std::map<job::JobState, int> states;
  std::uint64_t faults = 0;
  std::uint64_t decisions = 0;
  int epochs = 0;
  int tried_again = 0;
  int from_checkpoint = 0;
  std::set<std::pair<std::uint64_t, JobId>> paused;
  std::set<std::pair<std::uint64_t, std::string>> restored;  // checkpoints gone on from
  int drains = 0;
  int device_faults = 0;
  int taken = 0;     // checkpoints on the way
  int given_up = 0;  // that were damaged

  for (std::uint64_t seed = 1; seed <= 450; ++seed) {
    Scenario scenario = RandomScenario(seed);
    scenario.on_step = [&](const job::Event& event, Instant, const job::Actions& actions) {
      const auto* marked = std::get_if<job::NodeMarked>(&event);
      drains += marked != nullptr && marked->node.draining ? 1 : 0;
      const auto* broken = std::get_if<job::DeviceFaultsChanged>(&event);
      device_faults += broken != nullptr && !broken->faults.empty() ? 1 : 0;
      const auto* said = std::get_if<job::WorkerSaid>(&event);
      if (said != nullptr) {
        taken += std::holds_alternative<job::CheckpointedMessage>(said->message) ? 1 : 0;
        const auto* failed = std::get_if<job::FailedMessage>(&said->message);
        given_up += failed != nullptr && failed->field == protocol::kCheckpointField ? 1 : 0;
      }
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist != nullptr && persist->record.state == job::JobState::kPaused) {
          paused.insert({seed, persist->record.id});
        }
        const auto* start = std::get_if<job::StartWorker>(&action);
        if (start != nullptr && !start->checkpoint.empty()) {
          restored.insert({seed, start->checkpoint});
        }
      }
    };
    const Outcome outcome = Simulate(std::move(scenario));
    faults += outcome.faults;
    for (const JobOutcome& job : outcome.jobs) {
      ++states[job.state];
      decisions += job.decisions_total;
      epochs += job.epochs > 0 ? 1 : 0;
      for (const job::AttemptRecord& attempt : job.attempts) {
        tried_again += attempt.number > 1 ? 1 : 0;
        from_checkpoint += attempt.number > 1 && attempt.first_round > 0 ? 1 : 0;
      }
    }
  }

  EXPECT_GE(states[job::JobState::kSucceeded], 100);
  EXPECT_GE(states[job::JobState::kFailed], 5);
  EXPECT_GE(states[job::JobState::kCancelled], 10);
  EXPECT_GE(faults, 200u);
  EXPECT_GE(decisions, 500u);
  EXPECT_GE(epochs, 20);
  EXPECT_GE(tried_again, 20);
  EXPECT_GE(from_checkpoint, 5);
  EXPECT_GE(taken, 500);
  EXPECT_GE(given_up, 1);
  EXPECT_GE(paused.size(), 10u);
  EXPECT_GE(restored.size(), 20u);
  EXPECT_GE(drains, 10);
  EXPECT_GE(device_faults, 10);
}

TEST(RandomScenarioCoverageTest, AgentsLeaveWithTheTimeForItAndWithout) {
  int told = 0;
  int suspended = 0;
  int lost = 0;  // groups that were not through by then, and of whom nobody was left to go on
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Scenario scenario = RandomScenario(seed);
    scenario.on_step = [&](const job::Event& event, Instant, const job::Actions& actions) {
      told += std::holds_alternative<job::NodeLeaving>(event) ? 1 : 0;
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist == nullptr || persist->record.state != job::JobState::kQueued) continue;
        const std::string& reason = persist->record.state_reason;
        suspended += reason.starts_with("node ") && reason.ends_with("is leaving: SIGTERM") ? 1 : 0;
        const bool excused =
            reason.starts_with("goes on") && reason.find("(retry") == std::string::npos;
        lost += excused ? 1 : 0;
      }
    };
    static_cast<void>(Simulate(std::move(scenario)));
  }

  EXPECT_GE(told, 10);
  EXPECT_GE(suspended, 5);
  EXPECT_GE(lost, 1);
}

// Without a stop: workers that join groups, and leave them.
TEST(RandomScenarioCoverageTest, GroupsGrowAndShrinkAsTheyTrain) {
  int grown = 0;
  int shrunk = 0;
  int never = 0;  // workers that loaded beside a group and are in none
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario scenario = RandomScenario(seed);
    std::map<JobId, job::JobRecord> records;
    scenario.on_step = [&](const job::Event&, Instant, const job::Actions& actions) {
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist == nullptr) continue;
        const job::JobRecord former = std::exchange(records[persist->record.id], persist->record);
        const job::JobRecord& record = persist->record;
        for (const job::MemberRecord& joiner : former.joiners) {
          const auto is_it = [&](const auto& one) { return one.worker == joiner.worker; };
          never += std::ranges::none_of(record.joiners, is_it) &&
                   std::ranges::none_of(record.members, is_it);
        }
        if (record.resizes == former.resizes) continue;
        grown += record.members.size() > former.members.size();
        shrunk += record.members.size() < former.members.size();
      }
    };
    static_cast<void>(Simulate(std::move(scenario)));
  }

  EXPECT_GE(grown, 10);
  EXPECT_GE(shrunk, 5);
  EXPECT_GE(never, 5);
}

TEST(RandomScenarioCoverageTest, SparesWaitAndTakeThePlacesOfWhoIsLost) {
  int waited = 0;
  int taken_in = 0;
  for (std::uint64_t seed = 1; seed <= 450; ++seed) {
    Scenario scenario = RandomScenario(seed);
    std::map<JobId, job::JobRecord> records;
    scenario.on_step = [&](const job::Event&, Instant, const job::Actions& actions) {
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist == nullptr) continue;
        const job::JobRecord& record = persist->record;
        const job::JobRecord former = std::exchange(records[record.id], record);
        waited +=
            record.state_reason.ends_with(" spare") && !former.state_reason.ends_with(" spare");
        if (record.regroups == former.regroups) continue;
        for (const job::MemberRecord& joiner : former.joiners) {
          taken_in += std::ranges::any_of(
              record.members, [&](const auto& one) { return one.worker == joiner.worker; });
        }
      }
    };
    static_cast<void>(Simulate(std::move(scenario)));
  }

  EXPECT_GE(waited, 10);
  EXPECT_GE(taken_in, 3);
}

// Workers that do not survive the loss of their group do not say so.
TEST(RandomScenarioCoverageTest, GroupsThatFallApartGoOn) {
  int said = 0;
  std::set<std::pair<std::uint64_t, JobId>> regrouped;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario scenario = RandomScenario(seed);
    scenario.on_step = [&](const job::Event& event, Instant, const job::Actions& actions) {
      const auto* message = std::get_if<job::WorkerSaid>(&event);
      said += message != nullptr && std::holds_alternative<job::GroupLostMessage>(message->message);
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist == nullptr || persist->record.regroups == 0) continue;
        regrouped.insert({seed, persist->record.id});
      }
    };
    static_cast<void>(Simulate(std::move(scenario)));
  }

  if (said > 0) {
    EXPECT_GE(regrouped.size(), 10u);
  }
}

TEST(RandomScenarioCoverageTest, OptimizersAreCutUpAndSubsetsChosen) {
  int chosen_anew = 0;
  int sharded = 0;
  int state_lost = 0;
  std::set<std::pair<std::uint64_t, JobId>> regrouped;  // with a state that is cut up
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Scenario scenario = RandomScenario(seed);
    std::vector<bool> cut;
    for (const SimulatedJob& job : scenario.jobs) cut.push_back(job.engine.shards.on());
    if (std::ranges::none_of(scenario.jobs, [](const SimulatedJob& job) {
          return job.engine.shards.on() || job.engine.subset.kind != engine::SubsetKind::kNone;
        })) {
      continue;
    }
    scenario.on_step = [&](const job::Event& event, Instant, const job::Actions& actions) {
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist == nullptr || persist->record.regroups == 0) continue;
        if (cut[persist->record.id.value - 1]) regrouped.insert({seed, persist->record.id});
      }
      const auto* said = std::get_if<job::WorkerSaid>(&event);
      if (said == nullptr) return;
      const auto* selected = std::get_if<job::SelectedMessage>(&said->message);
      chosen_anew += selected != nullptr && selected->number > 1 ? 1 : 0;
      const auto* failed = std::get_if<job::FailedMessage>(&said->message);
      const bool lost =
          failed != nullptr && failed->message.find("held by no member") != std::string::npos;
      state_lost += lost ? 1 : 0;
    };
    const Outcome outcome = Simulate(std::move(scenario));
    for (std::size_t i = 0; i < outcome.jobs.size(); ++i) {
      sharded += cut[i] && outcome.jobs[i].state == job::JobState::kSucceeded ? 1 : 0;
    }
  }

  EXPECT_GE(chosen_anew, 20);
  EXPECT_GE(sharded, 20);
  EXPECT_GE(regrouped.size(), 3u);
  EXPECT_GE(state_lost, 1);
}

// Of members that train together on the two hosts, or are killed while nothing else is wrong.
TEST(RandomScenarioCoverageTest, GroupsAreCutAndWorkersKilled) {
  int one_way = 0;
  int both_ways = 0;
  int broken = 0;  // connections, of members that live
  int killed = 0;
  int alone = 0;  // of these, where that is all that goes wrong
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario scenario = RandomScenario(seed);
    std::vector<Fault> faults = scenario.cluster.faults;
    const auto kills = [](const Fault& fault) { return fault.kind == Fault::Kind::kWorkerCrash; };
    const bool nothing_else =
        std::ranges::all_of(faults, kills) && scenario.cluster.control.duplicate_share == 0;
    std::map<JobId, job::JobRecord> records;
    const auto hit = [&](const Fault& fault) {
      return std::ranges::any_of(records, [&](const auto& entry) {
        const job::JobRecord& record = entry.second;
        const auto on = [&](const std::string& host) {
          return std::ranges::find(record.members, host, &job::MemberRecord::node) !=
                 record.members.end();
        };
        const bool of_two = fault.kind == Fault::Kind::kPartition;
        return record.state == job::JobState::kRunning && on(fault.host) &&
               (!of_two || on(fault.peer));
      });
    };
    scenario.on_step = [&](const job::Event&, Instant now, const job::Actions& actions) {
      std::erase_if(faults, [&](const Fault& fault) {
        if (Instant{} + Seconds(fault.at_seconds) > now) return false;
        const bool cut = fault.kind == Fault::Kind::kPartition && hit(fault);
        one_way += cut && fault.one_way;
        both_ways += cut && !fault.one_way;
        broken += cut && fault.breaks;
        killed += kills(fault) && hit(fault);
        alone += nothing_else && hit(fault);
        return true;
      });
      for (const job::Action& action : actions) {
        const auto* persist = std::get_if<job::PersistJob>(&action);
        if (persist != nullptr) records[persist->record.id] = persist->record;
      }
    };
    static_cast<void>(Simulate(std::move(scenario)));
  }

  EXPECT_GE(one_way, 10);
  EXPECT_GE(both_ways, 10);
  EXPECT_GE(broken, 10);
  EXPECT_GE(killed, 10);
  EXPECT_GE(alone, 5);
}

}  // namespace
}  // namespace tactus::simulator
