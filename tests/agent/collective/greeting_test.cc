// Who is taken for a member, by what was said.

#include "agent/collective/greeting.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

constexpr std::uint64_t kWord = 0x0123456789abcdef;

GroupSecret Ours() { return {.secret = "of generation 7", .generation = 7}; }

Hello HelloOf(const Greeting& greeting) {
  Hello hello = {.generation = greeting.generation(), .from = 2, .to = 1, .lane = 3};
  hello.nonce.fill(std::byte{9});
  greeting.Sign(hello);
  return hello;
}

Answer AnswerOf(const Greeting& greeting, const Hello& hello) {
  Answer answer;
  answer.nonce.fill(std::byte{5});
  greeting.Sign(hello, answer);
  return answer;
}

TEST(GreetingTest, MembersBelieveOneAnother) {
  const Greeting opens(Ours(), kWord);
  const Greeting accepts(Ours(), kWord);

  const Hello hello = HelloOf(opens);
  const Answer answer = AnswerOf(accepts, hello);
  const Proof proof = opens.Prove(hello, answer);

  EXPECT_TRUE(accepts.IsTrue(hello));
  EXPECT_TRUE(opens.IsTrue(hello, answer));
  EXPECT_TRUE(accepts.IsTrue(hello, answer, proof));
  EXPECT_EQ(opens.KeyOf(hello), accepts.KeyOf(hello));
}

TEST(GreetingTest, BytesSayAllOfIt) {
  const Hello hello = HelloOf(Greeting(Ours(), kWord));
  EXPECT_EQ(DecodeHello(Encode(hello)), hello);
  const Answer answer = AnswerOf(Greeting(Ours(), kWord), hello);
  const std::optional<Answer> decoded = DecodeAnswer(Encode(answer));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->nonce, answer.nonce);
  EXPECT_EQ(decoded->mac, answer.mac);
}

TEST(GreetingTest, OtherBytesAreNone) {
  const HelloBytes bytes = Encode(HelloOf(Greeting(Ours(), kWord)));
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back({});
  HelloBytes other = bytes;
  other[0] ^= std::byte{1};

  EXPECT_FALSE(DecodeHello(std::span(bytes).first(kHelloBytes - 1)));
  EXPECT_FALSE(DecodeHello(longer));
  EXPECT_FALSE(DecodeHello(other));
  EXPECT_FALSE(DecodeHello({}));
  EXPECT_FALSE(DecodeAnswer(std::span(bytes).first(kAnswerBytes - 1)));
}

TEST(GreetingTest, NoBitOfAHelloCanBeAnother) {
  const Greeting greeting(Ours(), kWord);
  const HelloBytes bytes = Encode(HelloOf(greeting));
  for (std::size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    HelloBytes other = bytes;
    other[bit / 8] ^= std::byte{1} << (bit % 8);
    const std::optional<Hello> hello = DecodeHello(other);
    EXPECT_FALSE(hello && greeting.IsTrue(*hello)) << "bit " << bit;
  }
}

TEST(GreetingTest, WhoHasAnotherSecretIsNotBelieved) {
  const Greeting ours(Ours(), kWord);
  for (const GroupSecret& other : {GroupSecret{.secret = "", .generation = 7},
                                   GroupSecret{.secret = "of generation 6", .generation = 7},
                                   GroupSecret{.secret = "of generation 7", .generation = 6}}) {
    const Greeting theirs(other, kWord);
    const Hello hello = HelloOf(theirs);
    EXPECT_FALSE(ours.IsTrue(hello));
    if (other.generation != 7) continue;
    const Hello own = HelloOf(ours);
    const Answer answer = AnswerOf(theirs, own);
    EXPECT_FALSE(ours.IsTrue(own, answer));
    EXPECT_FALSE(ours.IsTrue(own, AnswerOf(ours, own), theirs.Prove(own, AnswerOf(ours, own))));
    EXPECT_NE(ours.KeyOf(own), theirs.KeyOf(own));
  }
}

TEST(GreetingTest, WhatWasSaidInAnotherMeetingProvesNothing) {
  const Hello hello = HelloOf(Greeting(Ours(), kWord));
  EXPECT_FALSE(Greeting(Ours(), kWord + 1).IsTrue(hello));
}

TEST(GreetingTest, NoProofStandsForAnother) {
  const Greeting greeting(Ours(), kWord);
  const Hello hello = HelloOf(greeting);
  const Answer answer = AnswerOf(greeting, hello);
  const Proof proof = greeting.Prove(hello, answer);

  // A reflected one, in either direction.
  EXPECT_FALSE(greeting.IsTrue(hello, answer, {.mac = answer.mac}));
  EXPECT_FALSE(greeting.IsTrue(hello, {.nonce = answer.nonce, .mac = proof.mac}));
  EXPECT_FALSE(greeting.IsTrue(hello, {.nonce = answer.nonce, .mac = hello.mac}));
  // A replayed one, to another challenge.
  Answer later = answer;
  later.nonce[0] ^= std::byte{1};
  greeting.Sign(hello, later);
  EXPECT_FALSE(greeting.IsTrue(hello, later, proof));
  EXPECT_NE(greeting.KeyOf(hello), answer.mac);
  EXPECT_NE(greeting.KeyOf(hello), hello.mac);
}

TEST(GreetingPropertyTest, BytesOfAnyKindAreNoMembers) {
  const Greeting greeting(Ours(), kWord);
  Rng rng(1);
  const HelloBytes good = Encode(HelloOf(greeting));
  for (int i = 0; i < 1000; ++i) {
    HelloBytes bytes = good;
    for (std::size_t at = 4; at < bytes.size(); ++at) {
      bytes[at] = static_cast<std::byte>(rng.Below(256));
    }
    const std::optional<Hello> hello = DecodeHello(bytes);
    ASSERT_TRUE(hello);
    EXPECT_EQ(Encode(*hello), bytes);
    EXPECT_FALSE(greeting.IsTrue(*hello));
  }
}

}  // namespace
}  // namespace tactus::collective
