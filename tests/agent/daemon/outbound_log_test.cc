#include "agent/daemon/outbound_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace tactus::agent {
namespace {

std::vector<std::string> SendAll(OutboundLog& log) {
  std::vector<std::string> sent;
  while (const OutboundLog::Entry* entry = log.Next()) {
    sent.push_back(std::to_string(entry->sequence) + entry->payload);
  }
  return sent;
}

using Texts = std::vector<std::string>;

TEST(OutboundLogTest, EntriesAreSentInOrderAndNumberedFromOne) {
  OutboundLog log({});
  ASSERT_TRUE(log.Append("a", Importance::kMessage));
  ASSERT_TRUE(log.Append("b", Importance::kReport));

  EXPECT_EQ(SendAll(log), (Texts{"1a", "2b"}));
  EXPECT_EQ(log.Next(), nullptr);
}

TEST(OutboundLogTest, WhatIsAcknowledgedIsForgotten) {
  OutboundLog log({});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kReport));
  SendAll(log);

  log.Acknowledge(2);

  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(log.bytes(), 1u);
}

TEST(OutboundLogTest, AfterAReconnectWhatIsNewerThanAcknowledgedIsSentAgainFirst) {
  OutboundLog log({});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kMessage));
  SendAll(log);
  ASSERT_TRUE(log.Append("d", Importance::kMessage));

  log.Rewind(1);

  EXPECT_EQ(SendAll(log), (Texts{"2b", "3c", "4d"}));
}

TEST(OutboundLogTest, AFullLogLosesItsOldestWaitingReportAndLeavesNoGap) {
  OutboundLog log({.entries_max = 3});
  ASSERT_TRUE(log.Append("m", Importance::kMessage));
  ASSERT_TRUE(log.Append("r1", Importance::kReport));
  ASSERT_TRUE(log.Append("r2", Importance::kReport));

  ASSERT_TRUE(log.Append("r3", Importance::kReport));
  ASSERT_TRUE(log.Append("n", Importance::kMessage));

  EXPECT_EQ(log.dropped(), 2u);
  EXPECT_EQ(SendAll(log), (Texts{"1m", "2r3", "3n"}));
}

TEST(OutboundLogTest, ReportsInFlightAreNotDropped) {
  OutboundLog log({.entries_max = 2});
  ASSERT_TRUE(log.Append("r1", Importance::kReport));
  ASSERT_TRUE(log.Append("r2", Importance::kReport));
  SendAll(log);

  EXPECT_FALSE(log.Append("r3", Importance::kReport));

  EXPECT_EQ(log.dropped(), 1u);
  log.Rewind(0);
  EXPECT_EQ(SendAll(log), (Texts{"1r1", "2r2"}));
}

TEST(OutboundLogTest, MessagesThatAloneFillTheLogAreRefusedButExitsAreNot) {
  OutboundLog log({.entries_max = 2});
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
    OutboundLog log({});
    ASSERT_TRUE(log.Append("x", importance));
    EXPECT_FALSE(log.HoldsWords());
  }
  for (const Importance importance : {Importance::kMessage, Importance::kExit}) {
    OutboundLog log({});
    ASSERT_TRUE(log.Append("x", importance));
    EXPECT_TRUE(log.HoldsWords());
    log.Next();
    EXPECT_TRUE(log.HoldsWords());
    log.Acknowledge(1);
    EXPECT_FALSE(log.HoldsWords());
  }
}

TEST(OutboundLogTest, BytesAreBoundedAsWell) {
  OutboundLog log({.bytes_max = 10});
  ASSERT_TRUE(log.Append("rrrrrr", Importance::kReport));

  ASSERT_TRUE(log.Append("mmmmmm", Importance::kMessage));

  EXPECT_EQ(log.bytes(), 6u);
  EXPECT_EQ(SendAll(log), (Texts{"1mmmmmm"}));
}

TEST(OutboundLogTest, SendingPausesWhenTooMuchIsUnacknowledged) {
  OutboundLog log({.in_flight_max = 2});
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log.Append(text, Importance::kReport));

  EXPECT_EQ(SendAll(log), (Texts{"1a", "2b"}));
  log.Acknowledge(1);
  EXPECT_EQ(SendAll(log), (Texts{"3c"}));
}

TEST(OutboundLogTest, WorkersOutputGivesWayToEverythingElse) {
  OutboundLog log({.entries_max = 3});
  for (const char* text : {"l1", "l2"}) ASSERT_TRUE(log.Append(text, Importance::kLogLines));
  ASSERT_TRUE(log.Append("r1", Importance::kReport));

  ASSERT_TRUE(log.Append("r2", Importance::kReport));
  ASSERT_TRUE(log.Append("m", Importance::kMessage));
  EXPECT_FALSE(log.Append("l3", Importance::kLogLines));

  EXPECT_EQ(log.dropped(), 0u);
  EXPECT_EQ(SendAll(log), (Texts{"1r1", "2r2", "3m"}));
}

TEST(OutboundLogTest, WorkersOutputKeepsToItsShareAlsoInFlight) {
  OutboundLog log({.log_entries_max = 2, .log_bytes_max = 5});
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
struct Receiver {
  std::uint64_t last = 0;
  std::vector<std::string> payloads;
  bool in_order = true;

  void Take(const OutboundLog::Entry& entry) {
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
  OutboundLog log(options);
  Receiver receiver;
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
      if (const OutboundLog::Entry* entry = log.Next()) receiver.Take(*entry);
    } else if (what == 8) {
      log.Acknowledge(rng.Below(receiver.last + 1));
    } else {
      log.Rewind(receiver.last);
    }
    ASSERT_LE(log.size(), options.entries_max + exits) << "seed " << seed;
    ASSERT_LE(log.bytes(), options.bytes_max + exits * 10) << "seed " << seed;
  }
  while (!log.empty()) {
    while (const OutboundLog::Entry* entry = log.Next()) receiver.Take(*entry);
    log.Acknowledge(receiver.last);
  }

  EXPECT_TRUE(receiver.in_order) << "seed " << seed;
  std::vector<std::string> messages;
  std::ranges::copy_if(receiver.payloads, std::back_inserter(messages),
                       [](const std::string& payload) { return payload[0] == 'm'; });
  EXPECT_EQ(messages, accepted_messages) << "seed " << seed;
  const auto index = [](const std::string& payload) { return std::stoi(payload.substr(1)); };
  EXPECT_TRUE(std::ranges::is_sorted(receiver.payloads, {}, index)) << "seed " << seed;
}

TEST(OutboundLogPropertyTest, MessagesArriveOnceInOrderAndWithoutGapsWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) LiveAndCheck(seed);
}

}  // namespace
}  // namespace tactus::agent
