#include "client/observe/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/client/sample_outcome.h"

namespace tactus::client {
namespace {

using nlohmann::json;
using ::testing::UnorderedElementsAre;

json Events(const simulator::Outcome& outcome) {
  const json trace = json::parse(ChromeTrace(outcome), nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(trace.is_object());
  return trace.value("traceEvents", json());
}

// The events of one phase.
std::vector<json> OfPhase(const json& events, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

// The keys that the format requires of an event of each phase.
const std::map<std::string, std::set<std::string>> kRequired = {
    {"M", {"name", "ph", "pid", "args"}},
    {"X", {"name", "ph", "pid", "tid", "ts", "dur"}},
    {"i", {"name", "ph", "pid", "tid", "ts", "s"}},
    {"C", {"name", "ph", "pid", "ts", "args"}}};

TEST(TraceFileTest, EveryEventHasTheKeysThatItsPhaseRequires) {
  const json events = Events(SampleOutcome());

  ASSERT_TRUE(events.is_array());
  for (const json& event : events) {
    const std::string phase = event.value("ph", "");
    ASSERT_TRUE(kRequired.contains(phase)) << event;
    for (const std::string& key : kRequired.at(phase)) EXPECT_TRUE(event.contains(key)) << event;
    for (const char* key : {"ts", "dur"}) {
      EXPECT_GE(event.value(key, 0.0), 0) << event;
    }
    EXPECT_TRUE(event["pid"].is_number_unsigned()) << event;
  }
}

TEST(TraceFileTest, AHostIsAProcessAndAWorkerAThread) {
  const json events = Events(SampleOutcome());

  std::vector<std::string> names;
  for (const json& event : OfPhase(events, "M")) {
    names.push_back(event["name"].get<std::string>() + " " +
                    event["args"]["name"].get<std::string>());
  }

  EXPECT_THAT(names,
              UnorderedElementsAre("process_name job", "process_name a", "process_name b",
                                   "thread_name cpu:0 worker 1", "thread_name cpu:0 worker 2"));
  const std::vector<json> spans = OfPhase(events, "X");
  EXPECT_EQ(spans[0]["pid"], spans[1]["pid"]);
  EXPECT_NE(spans[0]["pid"], spans[3]["pid"]);
}

TEST(TraceFileTest, SpansAreCompleteEventsInMicroseconds) {
  const std::vector<json> spans = OfPhase(Events(SampleOutcome()), "X");

  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0]["name"], "load");
  EXPECT_EQ(spans[0]["args"], json::object());
  EXPECT_EQ(spans[1]["name"], "compute");
  EXPECT_EQ(spans[1]["ts"], 3e6);
  EXPECT_EQ(spans[1]["dur"], 250000);
  EXPECT_EQ(spans[1]["args"], json({{"round", 1}, {"samples", 32}}));
  EXPECT_EQ(spans[2]["name"], "wait");
  EXPECT_EQ(spans[3]["name"], "transfer");
  EXPECT_EQ(spans[3]["dur"], 0.001);
  EXPECT_EQ(spans[4]["name"], "pause");
}

TEST(TraceFileTest, PlanChangesAreInstantsAndTheFirstSaysWhy) {
  const std::vector<json> plans = OfPhase(Events(SampleOutcome()), "i");

  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0]["name"], "plan 2");
  EXPECT_EQ(plans[0]["s"], "t");
  EXPECT_EQ(plans[0]["args"],
            json({{"round", 40}, {"batch", "48,16"}, {"reason", "b is \"slow\""}}));
  EXPECT_EQ(plans[1]["args"], json({{"round", 40}}));
  EXPECT_NE(plans[0]["tid"], plans[1]["tid"]);
}

TEST(TraceFileTest, TheLossIsACounterFromTheFirstRoundOn) {
  const std::vector<json> counters = OfPhase(Events(SampleOutcome()), "C");

  ASSERT_EQ(counters.size(), 2u);  // the third is not a number
  EXPECT_EQ(counters[0]["name"], "loss");
  EXPECT_EQ(counters[0]["ts"], 13e6);  // training begins at 3 s
  EXPECT_EQ(counters[0]["args"]["loss"], 2);
  EXPECT_EQ(counters[1]["args"]["loss"], 1.5);
}

TEST(TraceFileTest, AnEmptyTraceIsOneToo) {
  EXPECT_EQ(Events({}).size(), 1u);  // the track of the loss
}

}  // namespace
}  // namespace tactus::client
