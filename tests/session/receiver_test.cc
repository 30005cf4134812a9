#include "session/receiver.h"

#include <gtest/gtest.h>

namespace tactus::session {
namespace {

using Verdict = Receiver::Verdict;

TEST(ReceiverTest, EachNumberIsHandledOnceAndInOrder) {
  Receiver receiver;

  EXPECT_EQ(receiver.Take(1), Verdict::kHandle);
  EXPECT_EQ(receiver.Take(2), Verdict::kHandle);
  EXPECT_EQ(receiver.Take(1), Verdict::kKnown);
  EXPECT_EQ(receiver.Take(2), Verdict::kKnown);
  EXPECT_EQ(receiver.Take(3), Verdict::kHandle);
  EXPECT_EQ(receiver.received(), 3u);
}

TEST(ReceiverTest, TheFirstNumberMayBeAny) {
  Receiver receiver;

  EXPECT_EQ(receiver.Take(17), Verdict::kHandle);
  EXPECT_EQ(receiver.Take(18), Verdict::kHandle);
}

TEST(ReceiverTest, AGapIsToldAndNotTaken) {
  Receiver receiver;
  ASSERT_EQ(receiver.Take(1), Verdict::kHandle);

  EXPECT_EQ(receiver.Take(3), Verdict::kGap);
  EXPECT_EQ(receiver.received(), 1u);
  EXPECT_EQ(receiver.Take(2), Verdict::kHandle);
}

TEST(ReceiverTest, WhatIsNotNumberedIsNotHandled) {
  Receiver receiver;

  EXPECT_EQ(receiver.Take(0), Verdict::kKnown);
  EXPECT_EQ(receiver.received(), 0u);
}

}  // namespace
}  // namespace tactus::session
