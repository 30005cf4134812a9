#include "client/observe/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tactus::client {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Worker {
  std::uint64_t samples = 8;
  double compute = 0;
  double blocked = 0;
  double update = 0;
};

// A job's history, as it grows.
class History {
 public:
  History() { job_.set_name("projects/default/jobs/demo-1"); }

  History& Group(std::uint64_t first_round,
                 const std::vector<std::pair<int, std::string>>& members) {
    v1::RoundGroup& group = *rounds_.add_groups();
    group.set_generation(static_cast<std::uint64_t>(rounds_.groups_size()));
    group.set_first_round(first_round);
    for (const auto& [id, node] : members) {
      v1::RoundGroupMember& member = *group.add_members();
      member.set_worker_id(static_cast<std::uint64_t>(id));
      member.set_node(node);
      member.set_device("cpu:0");
    }
    return *this;
  }

  v1::Round& Round(std::uint64_t number, double seconds, const std::vector<Worker>& workers) {
    v1::Round& round = *rounds_.add_rounds();
    round.set_round(number);
    round.set_seconds(seconds);
    round.set_loss(2);
    round.set_plan_version(1);
    round.set_steps(1);
    for (const Worker& worker : workers) {
      round.set_samples(round.samples() + worker.samples);
      round.add_worker_samples(worker.samples);
      round.add_worker_compute_seconds(worker.compute);
      round.add_worker_blocked_seconds(worker.blocked);
      round.add_worker_update_seconds(worker.update);
    }
    return round;
  }

  v1::Decision& Decision(std::uint64_t plan, v1::Axis axis, const std::string& to) {
    v1::Decision& decision = *decisions_.add_decisions();
    decision.set_plan_version(plan);
    decision.set_axis(axis);
    decision.set_to(to);
    return decision;
  }

  JobTrace Trace() const { return TraceJob(job_, rounds_, decisions_); }

  json Events() const {
    const json trace = json::parse(Trace().text, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(trace.is_object());
    return trace.value("traceEvents", json());
  }

 private:
  v1::Job job_;
  v1::ListRoundsResponse rounds_;
  v1::ListDecisionsResponse decisions_;
};

struct Span {
  std::string name;
  double begin = 0;  // [us]
  double end = 0;
  json arguments;
};

// The spans of the threads that have this name.
std::vector<Span> SpansOf(const json& events, const std::string& thread) {
  std::vector<std::pair<json, json>> tracks;
  for (const json& event : events) {
    if (event["name"] == "thread_name" && event["args"]["name"] == thread) {
      tracks.emplace_back(event["pid"], event["tid"]);
    }
  }
  std::vector<Span> spans;
  for (const json& event : events) {
    const std::pair<json, json> track(event["pid"], event["tid"]);
    if (event["ph"] != "X" || std::ranges::find(tracks, track) == tracks.end()) continue;
    const double begin = event["ts"];
    spans.push_back({.name = event["name"],
                     .begin = begin,
                     .end = begin + event["dur"].get<double>(),
                     .arguments = event["args"]});
  }
  return spans;
}

std::vector<std::string> Names(const std::vector<Span>& spans) {
  std::vector<std::string> names;
  for (const Span& span : spans) names.push_back(span.name);
  return names;
}

const Span& Find(const std::vector<Span>& spans, const std::string& name) {
  static const Span kNone;
  const auto found = std::ranges::find(spans, name, &Span::name);
  EXPECT_NE(found, spans.end()) << name;
  return found == spans.end() ? kNone : *found;
}

std::vector<json> OfPhase(const json& events, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

// Spans of one thread nest or lie apart, and nothing is negative. The threads' names.
void ExpectSound(const json& events) {
  std::map<std::pair<json, json>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : events) {
    if (event["ph"] != "M") {
      EXPECT_GE(event["ts"].get<double>(), 0) << event;
    }
    if (event["ph"] != "X") continue;
    EXPECT_GT(event["dur"].get<double>(), 0) << event;
    tracks[{event["pid"], event["tid"]}].emplace_back(
        event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  }
  constexpr double kHalfNanosecond = 0.0005;  // of doubles; the text is exact
  for (const auto& [track, spans] : tracks) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      for (std::size_t j = i + 1; j < spans.size(); ++j) {
        const auto [a, b] = std::minmax(spans[i], spans[j]);
        const bool apart = b.first >= a.second - kHalfNanosecond;
        const bool within = b.second <= a.second + kHalfNanosecond || b.first <= a.first;
        EXPECT_TRUE(apart || within) << track.first << ' ' << a.first << ' ' << b.first;
      }
    }
  }
}

TEST(JobTraceTest, ARoundIsLaidBackwardsFromItsEndForEveryWorker) {
  History history;
  history.Group(0, {{11, "a"}, {12, "b"}});
  history.Round(0, 1, {{.compute = 0.25, .blocked = 0.7}, {.compute = 0.875, .blocked = 0.1}});

  const json events = history.Events();

  ExpectSound(events);
  const std::vector<Span> fast = SpansOf(events, "cpu:0 worker 11");
  const std::vector<Span> slow = SpansOf(events, "cpu:0 worker 12");
  EXPECT_THAT(Names(fast), ElementsAre("round 0", "compute", "wait", "transfer"));
  EXPECT_THAT(Names(slow), ElementsAre("round 0", "compute", "transfer"));
  EXPECT_NEAR(Find(fast, "compute").begin, 50'000, 1e-3);
  EXPECT_NEAR(Find(fast, "wait").begin, 300'000, 1e-3);
  EXPECT_NEAR(Find(fast, "transfer").begin, 900'000, 1e-3);
  // The one axis: both end together, whatever their clocks said of the hour.
  EXPECT_NEAR(Find(fast, "transfer").end, 1e6, 1e-3);
  EXPECT_NEAR(Find(slow, "transfer").end, 1e6, 1e-3);
  EXPECT_NEAR(Find(slow, "transfer").begin, Find(fast, "transfer").begin, 1e-3);
}

TEST(JobTraceTest, TheUpdateOfARoundIsAtTheBeginOfTheNext) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Round(0, 1, {{.compute = 0.5, .blocked = 0.25, .update = 0.125}});
  history.Round(1, 1, {{.compute = 0.5, .blocked = 0.25, .update = 0.0625}});

  const std::vector<Span> spans = SpansOf(history.Events(), "cpu:0 worker 11");

  const Span& update = Find(spans, "optimizer");
  EXPECT_EQ(update.begin, 1e6);
  EXPECT_EQ(update.end, 1.125e6);
  EXPECT_EQ(update.arguments, json({{"round", 0}}));
  EXPECT_EQ(std::ranges::count(Names(spans), "optimizer"), 1);
}

TEST(JobTraceTest, ADelayedRoundBeginsWithTheUpdateOfTheOneBeforeTheLast) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Decision(1, v1::AXIS_SYNCHRONIZATION, "delayed");
  history.Decision(2, v1::AXIS_SYNCHRONIZATION, "every_step");
  for (std::uint64_t i = 0; i < 3; ++i) {
    history.Round(i, 1, {{.compute = 0.5, .update = 0.0625 * static_cast<double>(i + 1)}});
  }
  history.Round(3, 1, {{.compute = 0.5}}).set_plan_version(2);

  const std::vector<Span> spans = SpansOf(history.Events(), "cpu:0 worker 11");

  std::vector<std::pair<double, json>> updates;  // where they end, and what they say
  for (const Span& span : spans) {
    if (span.name == "optimizer") updates.emplace_back(span.end, span.arguments["round"]);
  }
  // The time behind the end of round 1 is that of round 0's update; behind the last delayed one its
  // own update is applied too.
  EXPECT_THAT(updates, ElementsAre(std::pair(1.0625e6, json(0)), std::pair(2.125e6, json(0)),
                                   std::pair(3.1875e6, json(2))));
}

TEST(JobTraceTest, WhatIsLongerThanItsRoundIsShortenedAlike) {
  History history;
  history.Group(0, {{11, "a"}, {12, "b"}});
  history.Round(0, 1,
                {{.compute = 1.5, .blocked = 0.5, .update = 1}, {.compute = 1, .blocked = 0}});
  history.Round(1, 1, {{.compute = 2, .blocked = 1}, {.compute = 3, .blocked = 2}});

  const json events = history.Events();

  ExpectSound(events);
  const std::vector<Span> first = SpansOf(events, "cpu:0 worker 11");
  EXPECT_EQ(Find(first, "compute").begin, 0);
  EXPECT_EQ(Find(first, "compute").end, 750'000);
  EXPECT_EQ(Find(first, "optimizer").begin, 1'000'000);
  EXPECT_EQ(Find(first, "optimizer").end, 1'250'000);
  EXPECT_EQ(Find(first, "compute").arguments["measured_seconds"], 1.5);
  EXPECT_EQ(Find(first, "optimizer").arguments["measured_seconds"], 1);
  EXPECT_FALSE(Find(SpansOf(events, "cpu:0 worker 12"), "compute")
                   .arguments.contains("measured_seconds"));  // as long as its round
}

TEST(JobTraceTest, AWorkerThatCameLaterHasSpansFromThenOn) {
  History history;
  history.Group(0, {{11, "a"}}).Group(5, {{21, "a"}, {22, "b"}});
  history.Round(4, 1, {{.compute = 0.5, .update = 0.25}});
  history.Round(5, 1, {{.compute = 0.5}, {.compute = 0.5}});

  const json events = history.Events();

  ExpectSound(events);
  EXPECT_THAT(Names(SpansOf(events, "cpu:0 worker 11")), ElementsAre("round 4", "compute"));
  EXPECT_THAT(Names(SpansOf(events, "cpu:0 worker 21")), ElementsAre("round 5", "compute"));
  EXPECT_THAT(Names(SpansOf(events, "cpu:0 worker 22")), ElementsAre("round 5", "compute"));
  std::map<std::string, json> processes;
  for (const json& event : events) {
    if (event["name"] == "process_name") processes[event["args"]["name"]] = event["pid"];
  }
  EXPECT_EQ(processes.size(), 3u);  // the job, a, b
  EXPECT_TRUE(processes.contains("node a") && processes.contains("node b"));
}

TEST(JobTraceTest, ADelayedTransferLiesBelowTheNextRoundOnATrackOfItsOwn) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Decision(1, v1::AXIS_SYNCHRONIZATION, "delayed");
  history.Decision(2, v1::AXIS_SYNCHRONIZATION, "every_step");
  history.Round(0, 1, {{.compute = 0.75, .blocked = 0.25}}).set_transfer_seconds(0.5);
  history.Round(1, 1, {{.compute = 1, .blocked = 0}}).set_transfer_seconds(4);  // > its successor
  history.Round(2, 1, {{.compute = 0.5, .blocked = 0.5}}).set_transfer_seconds(0.25);
  v1::Round& next = history.Round(3, 1, {{.compute = 0.5, .blocked = 0.25}});
  next.set_plan_version(2);
  next.set_transfer_seconds(0.25);

  const json events = history.Events();

  ExpectSound(events);
  const std::vector<Span> own = SpansOf(events, "cpu:0 worker 11");
  const std::vector<Span> transfers = SpansOf(events, "cpu:0 worker 11 transfers");
  EXPECT_THAT(Names(own), ElementsAre("round 0", "compute", "wait", "round 1", "compute", "round 2",
                                      "compute", "wait", "round 3", "compute", "transfer"));
  ASSERT_EQ(transfers.size(), 2u);  // of 2 nothing is left: 1 took until its end
  EXPECT_EQ(transfers[0].begin, 1e6);
  EXPECT_EQ(transfers[0].end, 1.5e6);
  EXPECT_EQ(transfers[1].begin, 2e6);
  EXPECT_EQ(transfers[1].end, 3e6);
  EXPECT_FALSE(transfers[0].arguments.contains("measured_seconds"));
  EXPECT_EQ(transfers[1].arguments["measured_seconds"], 4);
}

TEST(JobTraceTest, TheLastDelayedRoundWaitedForItsOwnTransfer) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Decision(1, v1::AXIS_SYNCHRONIZATION, "delayed");
  history.Decision(2, v1::AXIS_SYNCHRONIZATION, "periodic 4");
  history.Round(0, 1, {{.compute = 0.5, .blocked = 0.5}}).set_transfer_seconds(0.25);
  history.Round(1, 1, {{.compute = 0.5, .blocked = 0.5}}).set_plan_version(2);

  const std::vector<Span> transfers = SpansOf(history.Events(), "cpu:0 worker 11 transfers");

  ASSERT_EQ(transfers.size(), 1u);
  EXPECT_EQ(transfers[0].begin, 0.75e6);
  EXPECT_EQ(transfers[0].end, 1e6);
}

TEST(JobTraceTest, PhasesOfNoLengthAreLeftOut) {
  History history;
  history.Group(0, {{11, "a"}, {12, "b"}});
  history.Round(0, 0, {{.compute = 0.5}, {.blocked = 0.5}});
  history.Round(1, 1, {{}, {}});

  const json events = history.Events();

  ExpectSound(events);
  EXPECT_THAT(Names(SpansOf(events, "cpu:0 worker 11")), ElementsAre("round 1"));
}

TEST(JobTraceTest, RoundsThatAreNotOnRecordLeaveAHoleAndARemark) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Round(0, 1, {{.compute = 1, .update = 0.5}});
  history.Round(4, 3, {{.compute = 1}});

  const json events = history.Events();

  ExpectSound(events);
  EXPECT_THAT(history.Trace().remarks, ElementsAre(HasSubstr("3 rounds")));
  const std::vector<Span> spans = SpansOf(events, "cpu:0 worker 11");
  EXPECT_EQ(Find(spans, "round 4").begin, 7e6);  // 1 s, then three of 2 s
  EXPECT_THAT(Names(spans), testing::Not(testing::Contains("optimizer")));
  const json hole = OfPhase(events, "i").at(1);
  EXPECT_EQ(hole["name"], "3 rounds not on record");
  EXPECT_EQ(hole["ts"], 1e6);
  EXPECT_EQ(hole["args"], json({{"first", 1}, {"last", 3}}));
}

TEST(JobTraceTest, DecisionsAreInstantsWithTheirReasons) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Round(0, 1, {{.compute = 1}});
  history.Round(1, 1, {{.compute = 1}}).set_plan_version(2);
  history.Decision(1, v1::AXIS_BATCH, "8").set_reason("the job's first plan");
  v1::Decision& second = history.Decision(2, v1::AXIS_BATCH, "16");
  second.set_from("8");
  second.set_round(0);
  second.set_predicted_gain(0.5);
  second.set_measured_gain(std::nan(""));
  second.set_reason("a \"quoted\" reason");
  history.Decision(9, v1::AXIS_BATCH, "32").set_round(77);  // outside of the range

  const json events = history.Events();

  const std::vector<json> instants = OfPhase(events, "i");
  ASSERT_EQ(instants.size(), 4u);
  EXPECT_EQ(instants[0]["name"], "plan 1");
  EXPECT_EQ(instants[1]["name"], "plan 2");
  EXPECT_EQ(instants[1]["ts"], 1e6);
  EXPECT_EQ(instants[2]["ts"], 0);
  EXPECT_EQ(instants[3]["name"], "batch: 16");
  EXPECT_EQ(instants[3]["ts"], 1e6);
  EXPECT_EQ(instants[3]["args"]["reason"], "a \"quoted\" reason");
  EXPECT_EQ(instants[3]["args"]["predicted_gain"], 0.5);
  EXPECT_FALSE(instants[3]["args"].contains("measured_gain"));
}

TEST(JobTraceTest, ADecisionOfARoundThatIsNotOnRecordLiesWithinTheHole) {
  History history;
  history.Group(0, {{11, "a"}});
  history.Round(0, 1, {{.compute = 1}});
  history.Round(5, 1, {{.compute = 1}});  // four of 1 s before it
  v1::Decision& decision = history.Decision(2, v1::AXIS_BATCH, "16");
  decision.set_from("8");
  decision.set_round(3);

  const std::vector<json> instants = OfPhase(history.Events(), "i");

  ASSERT_EQ(instants.size(), 3u);
  EXPECT_EQ(instants[1]["args"],
            json({{"first", 1}, {"last", 4}, {"decisions_placed_by_their_rounds", 1}}));
  EXPECT_EQ(instants[2]["name"], "batch: 16");
  EXPECT_EQ(instants[2]["ts"], 4e6);  // the end of the third of the four
}

TEST(JobTraceTest, CountersTellLossAndBatch) {
  History history;
  history.Group(0, {{11, "a"}, {12, "b"}});
  history.Round(0, 1, {{.samples = 24}, {.samples = 8}}).set_steps(2);
  history.Round(1, 1, {{.samples = 24}, {.samples = 8}}).set_loss(std::nan(""));

  const std::vector<json> counters = OfPhase(history.Events(), "C");

  ASSERT_EQ(counters.size(), 5u);  // the loss that is no number is left out
  EXPECT_EQ(counters[0]["name"], "loss");
  EXPECT_EQ(counters[0]["ts"], 1e6);
  EXPECT_EQ(counters[1]["args"], json({{"samples", 16}}));
  EXPECT_EQ(counters[2]["args"], json({{"rank 0", 24}, {"rank 1", 8}}));
}

TEST(JobTraceTest, TheSizeOfTheGroupIsBesideTheEvents) {
  History history;
  history.Group(0, {{11, "a"}, {12, "b"}});
  history.Round(0, 1, {{.compute = 1}, {.compute = 1}});

  const json trace = json::parse(history.Trace().text, nullptr, /*allow_exceptions=*/false);

  EXPECT_EQ(trace["distributedInfo"], json({{"backend", "tcp"}, {"rank", 0}, {"world_size", 2}}));
}

TEST(JobTraceTest, RoundsOfUnknownGroupsAndWithoutTimesAreSaid) {
  History history;
  history.Group(5, {{11, "a"}});
  history.Round(3, 1, {{.compute = 1}, {.compute = 1}});
  history.Round(4, 1, {});
  history.Round(5, 1, {{.compute = 1}, {.compute = 1}});  // not the size of that group

  const JobTrace trace = history.Trace();

  EXPECT_THAT(trace.remarks,
              ElementsAre(HasSubstr("1 round without times"), HasSubstr("nodes of 2 rounds")));
  EXPECT_THAT(Names(SpansOf(history.Events(), "rank 1")),
              ElementsAre("round 3", "compute", "round 5", "compute"));
}

TEST(JobTraceTest, NumbersThatAreNoneDoNoHarm) {
  const double infinity = std::numeric_limits<double>::infinity();
  History history;
  history.Group(0, {{11, "\xff\x01"}, {12, "b"}});
  history.Round(0, infinity, {{.compute = -1, .blocked = std::nan("")}, {.compute = infinity}});
  history.Round(1, 1e300, {{.compute = 1e300, .blocked = 1e300}, {.blocked = infinity}});
  history.Round(std::numeric_limits<std::uint64_t>::max(), -3, {{}, {}});

  ExpectSound(history.Events());
}

TEST(JobTraceTest, NothingIsATraceToo) {
  const History history;
  EXPECT_EQ(history.Events().size(), 2u);  // the names of the job's track
  EXPECT_THAT(history.Trace().remarks, IsEmpty());
}

}  // namespace
}  // namespace tactus::client
