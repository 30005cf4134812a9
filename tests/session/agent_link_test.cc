#include "session/agent_link.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tactus::session {
namespace {

using Link = AgentLink<std::string>;

// What it writes until there is nothing left: "h" a heartbeat, "3x" an entry, each with "/" and
// what it acknowledges.
std::vector<std::string> Written(Link& link) {
  std::vector<std::string> written;
  while (const auto next = link.Next()) {
    std::string text = next->heartbeat ? "h" : "";
    if (next->entry != nullptr)
      text += std::to_string(next->entry->sequence) + next->entry->payload;
    written.push_back(text + "/" + std::to_string(next->acknowledged));
    link.Sent();
  }
  return written;
}

using Texts = std::vector<std::string>;

void Connect(Link& link, std::uint64_t acknowledged = 0) {
  link.Dial();
  link.Sent();
  ASSERT_EQ(link.Welcome({.server = "s", .epoch = 1}, acknowledged, false), "");
}

TEST(AgentLinkTest, NothingIsWrittenBeforeWelcome) {
  Link link({});
  ASSERT_TRUE(link.log().Append("a", Importance::kMessage));
  link.Dial();
  link.Sent();
  EXPECT_EQ(Written(link), Texts{});

  ASSERT_EQ(link.Welcome({}, 0, false), "");

  EXPECT_EQ(Written(link), Texts{"1a/0"});
}

TEST(AgentLinkTest, OneIsWrittenAtATime) {
  Link link({});
  Connect(link);
  ASSERT_TRUE(link.log().Append("a", Importance::kMessage));
  ASSERT_TRUE(link.log().Append("b", Importance::kMessage));

  EXPECT_TRUE(link.Next().has_value());
  EXPECT_FALSE(link.Next().has_value());
}

TEST(AgentLinkTest, WhatComesIsAcknowledgedAlsoWhenItComesAgain) {
  Link link({});
  Connect(link);
  EXPECT_EQ(link.Receive(1, 0), Receiver::Verdict::kHandle);
  EXPECT_EQ(Written(link), Texts{"/1"});

  EXPECT_EQ(link.Receive(1, 0), Receiver::Verdict::kKnown);
  EXPECT_EQ(Written(link), Texts{"/1"});

  EXPECT_EQ(link.Receive(0, 0), Receiver::Verdict::kKnown);
  EXPECT_EQ(Written(link), Texts{});
}

TEST(AgentLinkTest, AnAcknowledgementRidesOnAHeartbeat) {
  Link link({});
  Connect(link);
  ASSERT_EQ(link.Receive(7, 0), Receiver::Verdict::kHandle);
  link.Beat();

  EXPECT_EQ(Written(link), Texts{"h/7"});
}

TEST(AgentLinkTest, ANewStreamGoesOnWhereTheFormerBroke) {
  Link link({});
  Connect(link);
  for (const char* text : {"a", "b", "c"}) {
    ASSERT_TRUE(link.log().Append(text, Importance::kMessage));
  }
  EXPECT_EQ(Written(link), (Texts{"1a/0", "2b/0", "3c/0"}));
  ASSERT_EQ(link.Receive(1, 1), Receiver::Verdict::kHandle);
  EXPECT_TRUE(link.Closed());

  EXPECT_EQ(link.Dial(), 1u);
  link.Sent();
  ASSERT_EQ(link.Welcome({.server = "s", .epoch = 1}, 2, false), "");

  EXPECT_EQ(Written(link), Texts{"3c/1"});
}

TEST(AgentLinkTest, WordsBindItToItsCoordinator) {
  Link link({});
  Connect(link);
  ASSERT_TRUE(link.log().Append("a", Importance::kMessage));
  link.Closed();
  link.Dial();
  link.Sent();

  EXPECT_NE(link.Welcome({.server = "t", .epoch = 9}, 0, false), "");

  EXPECT_FALSE(link.welcomed());
  EXPECT_EQ(link.obeyed()->server, "s");
}

}  // namespace
}  // namespace tactus::session
