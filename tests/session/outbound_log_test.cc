#include "session/outbound_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tactus::session {
namespace {

using Log = OutboundLog<std::string>;

std::vector<std::string> SendAll(Log& log) {
  std::vector<std::string> sent;
  while (const Log::Entry* entry = log.Next()) {
    sent.push_back(std::to_string(entry->sequence) + entry->payload);
  }
  return sent;
}

using Texts = std::vector<std::string>;

TEST(OutboundLogTest, EntriesAreSentInOrderAndNumberedFromOne) {
  Log log({});
  ASSERT_TRUE(log.Append("a", Importance::kMessage));
  ASSERT_TRUE(log.Append("b", Importance::kReport));

  EXPECT_EQ(SendAll(log), (Texts{"1a", "2b"}));
  EXPECT_EQ(log.Next(), nullptr);
}

TEST(OutboundLogTest, WhatIsAcknowledgedIsForgotten) {
  Log log({});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kReport));
  SendAll(log);

  log.Acknowledge(2);

  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(log.bytes(), 1u);
}

TEST(OutboundLogTest, AfterAReconnectWhatIsNewerThanAcknowledgedIsSentAgainFirst) {
  Log log({});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kMessage));
  SendAll(log);
  ASSERT_TRUE(log.Append("d", Importance::kMessage));

  log.Rewind(1);

  EXPECT_EQ(SendAll(log), (Texts{"2b", "3c", "4d"}));
}

TEST(OutboundLogTest, AFullLogLosesItsOldestWaitingReportAndLeavesNoGap) {
  Log log({.entries_max = 3});
  ASSERT_TRUE(log.Append("m", Importance::kMessage));
  ASSERT_TRUE(log.Append("r1", Importance::kReport));
  ASSERT_TRUE(log.Append("r2", Importance::kReport));

  ASSERT_TRUE(log.Append("r3", Importance::kReport));
  ASSERT_TRUE(log.Append("n", Importance::kMessage));

  EXPECT_EQ(log.dropped(), 2u);
  EXPECT_EQ(SendAll(log), (Texts{"1m", "2r3", "3n"}));
}

TEST(OutboundLogTest, ReportsInFlightAreNotDropped) {
  Log log({.entries_max = 2});
  ASSERT_TRUE(log.Append("r1", Importance::kReport));
  ASSERT_TRUE(log.Append("r2", Importance::kReport));
  SendAll(log);

  EXPECT_FALSE(log.Append("r3", Importance::kReport));

  EXPECT_EQ(log.dropped(), 1u);
  log.Rewind(0);
  EXPECT_EQ(SendAll(log), (Texts{"1r1", "2r2"}));
}

TEST(OutboundLogTest, MessagesThatAloneFillTheLogAreRefusedButExitsAreNot) {
  Log log({.entries_max = 2});
  ASSERT_TRUE(log.Append("a", Importance::kMessage));
  ASSERT_TRUE(log.Append("b", Importance::kMessage));

  EXPECT_FALSE(log.Append("c", Importance::kMessage));
  EXPECT_TRUE(log.Append("x", Importance::kExit));

  EXPECT_EQ(SendAll(log), (Texts{"1a", "2b", "3x"}));
  EXPECT_EQ(log.dropped(), 0u);
}

TEST(OutboundLogTest, WordsAreWhatWorkersSaidAndMustNotBeLost) {
  for (const Importance importance :
       {Importance::kLogLines, Importance::kReport, Importance::kNode}) {
    Log log({});
    ASSERT_TRUE(log.Append("x", importance));
    EXPECT_FALSE(log.HoldsWords());
  }
  for (const Importance importance : {Importance::kMessage, Importance::kExit}) {
    Log log({});
    ASSERT_TRUE(log.Append("x", importance));
    EXPECT_TRUE(log.HoldsWords());
    log.Next();
    EXPECT_TRUE(log.HoldsWords());
    log.Acknowledge(1);
    EXPECT_FALSE(log.HoldsWords());
  }
}

TEST(OutboundLogTest, BytesAreBoundedAsWell) {
  Log log({.bytes_max = 10});
  ASSERT_TRUE(log.Append("rrrrrr", Importance::kReport));

  ASSERT_TRUE(log.Append("mmmmmm", Importance::kMessage));

  EXPECT_EQ(log.bytes(), 6u);
  EXPECT_EQ(SendAll(log), (Texts{"1mmmmmm"}));
}

TEST(OutboundLogTest, SendingPausesWhenTooMuchIsUnacknowledged) {
  Log log({.in_flight_max = 2});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kReport));

  EXPECT_EQ(SendAll(log), (Texts{"1a", "2b"}));
  log.Acknowledge(1);
  EXPECT_EQ(SendAll(log), (Texts{"3c"}));
}

TEST(OutboundLogTest, WorkersOutputGivesWayToEverythingElse) {
  Log log({.entries_max = 3});
  for (const char* text : {"l1", "l2"}) ASSERT_TRUE(log.Append(text, Importance::kLogLines));
  ASSERT_TRUE(log.Append("r1", Importance::kReport));

  ASSERT_TRUE(log.Append("r2", Importance::kReport));
  ASSERT_TRUE(log.Append("m", Importance::kMessage));
  EXPECT_FALSE(log.Append("l3", Importance::kLogLines));

  EXPECT_EQ(log.dropped(), 0u);
  EXPECT_EQ(SendAll(log), (Texts{"1r1", "2r2", "3m"}));
}

TEST(OutboundLogTest, WorkersOutputKeepsToItsShareAlsoInFlight) {
  Log log({.log_entries_max = 2, .log_bytes_max = 5});
  for (const char* text : {"l1", "l2", "l3"}) {
    ASSERT_TRUE(log.Append(text, Importance::kLogLines));
  }
  EXPECT_EQ(SendAll(log), (Texts{"1l2", "2l3"}));

  EXPECT_FALSE(log.Append("l4", Importance::kLogLines));
  log.Acknowledge(1);
  EXPECT_FALSE(log.Append("llll", Importance::kLogLines));  // too many bytes
  EXPECT_TRUE(log.Append("l5", Importance::kLogLines));

  EXPECT_EQ(log.dropped(), 0u);
  EXPECT_EQ(SendAll(log), (Texts{"3l5"}));
}

// A coordinator that takes what comes, each number once, as the protocol says.
struct Coordinator {
  std::uint64_t last = 0;
  std::vector<std::string> payloads;
  bool in_order = true;

  void Take(const Log::Entry& entry) {
    if (entry.sequence <= last) return;
    in_order = in_order && entry.sequence == last + 1;
    last = entry.sequence;
    payloads.push_back(entry.payload);
  }
};

// One random life of a log: appends, sends, acknowledgements, reconnects.
void LiveAndCheck(std::uint64_t seed) {
  Rng rng(seed);
  const OutboundLogOptions options{
      .entries_max = 1 + rng.Below(20), .bytes_max = 200, .in_flight_max = 1 + rng.Below(10)};
  Log log(options);
  Coordinator coordinator;
  std::vector<std::string> accepted_messages;
  std::size_t exits = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t what = rng.Below(10);
    if (what < 5) {
      const auto importance = static_cast<Importance>(rng.Below(20) == 0 ? 3 : rng.Below(3));
      const bool droppable = importance <= Importance::kReport;
      const std::string payload = (droppable ? "r" : "m") + std::to_string(i);
      if (log.Append(payload, importance) && !droppable) {
        accepted_messages.push_back(payload);
        if (importance == Importance::kExit) ++exits;
      }
    } else if (what < 8) {
      if (const Log::Entry* entry = log.Next()) coordinator.Take(*entry);
    } else if (what == 8) {
      log.Acknowledge(rng.Below(coordinator.last + 1));
    } else {
      log.Rewind(coordinator.last);
    }
    ASSERT_LE(log.size(), options.entries_max + exits) << "seed " << seed;
    ASSERT_LE(log.bytes(), options.bytes_max + exits * 10) << "seed " << seed;
  }
  while (!log.empty()) {
    while (const Log::Entry* entry = log.Next()) coordinator.Take(*entry);
    log.Acknowledge(coordinator.last);
  }

  EXPECT_TRUE(coordinator.in_order) << "seed " << seed;
  std::vector<std::string> messages;
  std::ranges::copy_if(coordinator.payloads, std::back_inserter(messages),
                       [](const std::string& payload) { return payload[0] == 'm'; });
  EXPECT_EQ(messages, accepted_messages) << "seed " << seed;
  const auto index = [](const std::string& payload) { return std::stoi(payload.substr(1)); };
  EXPECT_TRUE(std::ranges::is_sorted(coordinator.payloads, {}, index)) << "seed " << seed;
}

TEST(OutboundLogPropertyTest, MessagesArriveOnceInOrderAndWithoutGapsWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) LiveAndCheck(seed);
}

}  // namespace
}  // namespace tactus::session
