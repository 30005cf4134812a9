// Connections whose ends get to know each other, plain and encrypted.

#include "agent/collective/introduction.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

using testing::HasSubstr;
using State = Introduction::State;

constexpr std::uint64_t kMetWord = 77;

Party PartyOf(std::uint32_t rank, bool encrypted) {
  return {.group = {.secret = "of this generation", .generation = 7},
          .encrypted = encrypted,
          .rank = rank,
          .size = 3,
          .lanes = 2};
}

// Rank 2 opens a connection to rank 1.
class IntroductionTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    left_ = Descriptor(ends[0]);
    right_ = Descriptor(ends[1]);
  }

  bool encrypted() const { return GetParam(); }

  void Begin(std::uint32_t to = 1, std::uint32_t lane = 1, std::uint64_t word = kMetWord) {
    opens_ = Introduction::Open(std::move(left_), theirs_, to, lane, word);
    accepts_ = Introduction::Accept(std::move(right_), ours_, kMetWord);
    ASSERT_NE(opens_, nullptr);
  }

  std::pair<State, State> Introduce() {
    std::pair<State, State> states = {State::kOn, State::kOn};
    for (int turn = 0; turn < 10; ++turn) {
      if (states.first == State::kOn) states.first = opens_->Advance();
      if (states.second == State::kOn) states.second = accepts_->Advance();
    }
    return states;
  }

  Party ours_ = PartyOf(1, GetParam());
  Party theirs_ = PartyOf(2, GetParam());
  Descriptor left_, right_;
  std::unique_ptr<Introduction> opens_, accepts_;
};

TEST_P(IntroductionTest, MembersGetToKnowEachOther) {
  Begin();
  ASSERT_EQ(Introduce(), std::pair(State::kDone, State::kDone))
      << opens_->refusal() << accepts_->refusal();

  ASSERT_TRUE(accepts_->hello());
  EXPECT_EQ(accepts_->hello()->from, 2u);
  EXPECT_EQ(accepts_->hello()->lane, 1u);
  MeshConnection one = opens_->Take();
  MeshConnection other = accepts_->Take();
  EXPECT_EQ(one.encrypted(), encrypted());
  const std::array<std::byte, 3> sent = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> received = {};
  EXPECT_EQ(one.WriteSome({}, sent).bytes, 3u);
  EXPECT_TRUE(other.HasUnread());
  EXPECT_EQ(other.ReadSome({}, received).bytes, 3u);
  EXPECT_EQ(received, sent);
}

TEST_P(IntroductionTest, AStrangerIsRefused) {
  theirs_.group.secret = "a guess";
  Begin();

  EXPECT_EQ(Introduce().second, State::kRefused);
  EXPECT_THAT(accepts_->refusal(), HasSubstr("does not know the group's secret"));
  EXPECT_FALSE(accepts_->hello());
}

TEST_P(IntroductionTest, AMemberOfAFormerGenerationIsRefused) {
  theirs_.group = {.secret = "of the generation before", .generation = 6};
  Begin();

  EXPECT_EQ(Introduce().second, State::kRefused);
  EXPECT_THAT(accepts_->refusal(), HasSubstr("generation 6"));
}

TEST_P(IntroductionTest, WhatIsMeantForAnotherIsRefused) {
  Begin(/*to=*/0);
  EXPECT_EQ(Introduce().second, State::kRefused);
  EXPECT_THAT(accepts_->refusal(), HasSubstr("for another"));

  SetUp();
  Begin(1, /*lane=*/2);
  EXPECT_EQ(Introduce().second, State::kRefused);

  SetUp();
  theirs_.rank = 3;  // of three
  Begin();
  EXPECT_EQ(Introduce().second, State::kRefused);

  SetUp();
  theirs_.rank = 1;  // itself
  Begin();
  EXPECT_EQ(Introduce().second, State::kRefused);
}

TEST_P(IntroductionTest, WhatIsOfAnotherMeetingIsRefused) {
  Begin(1, 1, kMetWord + 1);
  EXPECT_EQ(Introduce().second, State::kRefused);
}

TEST_P(IntroductionTest, AnImpostorThatListensIsNotBelieved) {
  ours_.group.secret = "a guess";
  Begin();
  const auto [opened, accepted] = Introduce();
  EXPECT_EQ(accepted, State::kRefused);
  accepts_.reset();
  EXPECT_EQ(opens_->Advance(), State::kRefused);
}

TEST_P(IntroductionTest, BytesThatAreNoGreetingAreRefused) {
  const std::string text(200, 'G');
  ASSERT_EQ(send(left_.get(), text.data(), text.size(), 0), 200);
  accepts_ = Introduction::Accept(std::move(right_), ours_, kMetWord);

  EXPECT_EQ(accepts_->Advance(), State::kRefused);
  EXPECT_NE(accepts_->refusal(), "");
}

TEST_P(IntroductionTest, OfWhoLeavesWithoutAWordNothingIsTold) {
  left_.Close();
  accepts_ = Introduction::Accept(std::move(right_), ours_, kMetWord);

  EXPECT_EQ(accepts_->Advance(), State::kRefused);
  EXPECT_EQ(accepts_->refusal(), "");
}

TEST_P(IntroductionTest, AWordInPiecesIsAwaited) {
  accepts_ = Introduction::Accept(std::move(right_), ours_, kMetWord);
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  Descriptor relay(ends[1]);
  opens_ = Introduction::Open(Descriptor(ends[0]), theirs_, 1, 1, kMetWord);
  State opened = opens_->Advance();
  State accepted = State::kOn;
  // A byte at a time, in both directions.
  for (int turn = 0; turn < 4000 && (opened == State::kOn || accepted == State::kOn); ++turn) {
    char byte = 0;
    if (recv(relay.get(), &byte, 1, MSG_DONTWAIT) == 1) {
      ASSERT_EQ(send(left_.get(), &byte, 1, 0), 1);
    }
    if (accepted == State::kOn) accepted = accepts_->Advance();
    if (recv(left_.get(), &byte, 1, MSG_DONTWAIT) == 1) {
      ASSERT_EQ(send(relay.get(), &byte, 1, 0), 1);
    }
    if (opened == State::kOn) opened = opens_->Advance();
  }
  EXPECT_EQ(opened, State::kDone);
  EXPECT_EQ(accepted, State::kDone);
}

INSTANTIATE_TEST_SUITE_P(Every, IntroductionTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Encrypted" : "Plain"; });

// What was said on another connection, in the same meeting.
TEST(PlainIntroductionTest, AReplayedGreetingIsRefused) {
  const Party ours = PartyOf(1, false);
  const Party theirs = PartyOf(2, false);
  std::array<std::byte, kHelloBytes + kProofBytes> overheard = {};
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Greeting greeting(theirs.group, kMetWord);
  Hello hello = {.generation = 7, .from = 2, .to = 1, .lane = 0};
  greeting.Sign(hello);
  {
    const Descriptor member(ends[0]);
    const auto accepts = Introduction::Accept(Descriptor(ends[1]), ours, kMetWord);
    ASSERT_EQ(WriteSome(member, Encode(hello), {}).bytes, kHelloBytes);
    ASSERT_EQ(accepts->Advance(), State::kOn);
    AnswerBytes answer = {};
    ASSERT_EQ(ReadSome(member, answer, {}).bytes, kAnswerBytes);
    const Proof proof = greeting.Prove(hello, *DecodeAnswer(answer));
    ASSERT_EQ(WriteSome(member, proof.mac, {}).bytes, kProofBytes);
    ASSERT_EQ(accepts->Advance(), State::kDone);
    std::ranges::copy(Encode(hello), overheard.begin());
    std::ranges::copy(proof.mac, overheard.begin() + kHelloBytes);
  }
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Descriptor stranger(ends[0]);
  const auto accepts = Introduction::Accept(Descriptor(ends[1]), ours, kMetWord);
  ASSERT_EQ(WriteSome(stranger, overheard, {}).bytes, overheard.size());

  EXPECT_EQ(accepts->Advance(), State::kRefused);
  EXPECT_THAT(accepts->refusal(), HasSubstr("does not know"));
}

// Who is asked sends the question back.
TEST(PlainIntroductionTest, AReflectedGreetingIsRefused) {
  const Party theirs = PartyOf(2, false);
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Descriptor mirror(ends[0]);
  const auto opens = Introduction::Open(Descriptor(ends[1]), theirs, 1, 0, kMetWord);
  ASSERT_EQ(opens->Advance(), State::kOn);
  HelloBytes said = {};
  ASSERT_EQ(ReadSome(mirror, said, {}).bytes, kHelloBytes);
  ASSERT_EQ(WriteSome(mirror, said, {}).bytes, kHelloBytes);

  EXPECT_EQ(opens->Advance(), State::kRefused);
}

}  // namespace
}  // namespace tactus::collective
