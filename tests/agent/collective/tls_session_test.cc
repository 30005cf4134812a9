// Two ends that know a key, over a pair of sockets.

#include "agent/collective/tls_session.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

constexpr std::uint64_t kFewRecords = 3;

crypto::Mac KeyOf(int number) {
  crypto::Mac key;
  key.fill(static_cast<std::byte>(number));
  return key;
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class TlsSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    opened_ = Descriptor(ends[0]);
    accepted_ = Descriptor(ends[1]);
  }

  void Begin(const crypto::Mac& opening, const std::optional<crypto::Mac>& accepting,
             std::uint64_t records_per_key = TlsSession::kRecordsPerKey) {
    opens_ = TlsSession::Opening(opened_.get(), BytesOf("rank 2"), opening, records_per_key);
    accepts_ = TlsSession::Accepting(
        accepted_.get(),
        [this, accepting](std::span<const std::byte> identity) {
          named_.assign(reinterpret_cast<const char*>(identity.data()), identity.size());
          return accepting;
        },
        records_per_key);
  }

  // Of who opened, and of who accepted.
  std::pair<Flow, Flow> Shake() {
    std::pair<Flow, Flow> flows = {Flow::kBlocked, Flow::kBlocked};
    for (int turn = 0; turn < 10; ++turn) {
      if (flows.first == Flow::kBlocked) flows.first = opens_->Handshake(why_opened_);
      if (flows.second == Flow::kBlocked) flows.second = accepts_->Handshake(why_accepted_);
    }
    return flows;
  }

  // All of it, to the other end.
  void Pass(TlsSession& from, TlsSession& to, const std::string& text) {
    std::string received(text.size(), ' ');
    std::size_t sent = 0;
    std::size_t read = 0;
    while (read < text.size()) {
      if (sent < text.size()) {
        const Moved moved = from.Write({}, BytesOf(text).subspan(sent));
        ASSERT_TRUE(moved.flow == Flow::kMoved || moved.flow == Flow::kBlocked);
        sent += moved.bytes;
      }
      const Moved moved = to.Read({}, std::as_writable_bytes(std::span(received)).subspan(read));
      ASSERT_TRUE(moved.flow == Flow::kMoved || moved.flow == Flow::kBlocked);
      read += moved.bytes;
    }
    EXPECT_EQ(received, text);
  }

  Descriptor opened_, accepted_;
  std::unique_ptr<TlsSession> opens_, accepts_;
  std::string named_, why_opened_, why_accepted_;
};

TEST_F(TlsSessionTest, EndsThatKnowTheKeyUnderstandEachOther) {
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved)) << why_opened_ << why_accepted_;

  EXPECT_EQ(named_, "rank 2");
  Pass(*opens_, *accepts_, "short");
  Pass(*accepts_, *opens_, std::string(3 << 20, 'x'));
  Pass(*opens_, *accepts_, std::string(100'000, 'y'));
}

TEST_F(TlsSessionTest, NothingOfItIsInClear) {
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved));
  const std::string secret = "these are parameters, these are parameters";

  ASSERT_EQ(opens_->Write(BytesOf(secret), BytesOf(secret)).bytes, 2 * secret.size());

  std::string seen(4096, ' ');
  const ssize_t read = recv(accepted_.get(), seen.data(), seen.size(), MSG_PEEK);
  ASSERT_GT(read, 0);
  seen.resize(static_cast<std::size_t>(read));
  EXPECT_THAT(seen, testing::Not(testing::HasSubstr("parameters")));
  Pass(*accepts_, *opens_, "and back");
}

TEST_F(TlsSessionTest, AnotherKeyIsRefusedByBothEnds) {
  Begin(KeyOf(1), KeyOf(2));
  const auto [opened, accepted] = Shake();
  EXPECT_NE(opened, Flow::kMoved);
  EXPECT_EQ(accepted, Flow::kBroken);
  EXPECT_NE(why_accepted_, "");
}

TEST_F(TlsSessionTest, WhoIsNotKnownIsRefused) {
  Begin(KeyOf(1), std::nullopt);
  const auto [opened, accepted] = Shake();
  EXPECT_NE(opened, Flow::kMoved);
  EXPECT_EQ(accepted, Flow::kBroken);
}

TEST_F(TlsSessionTest, WhoSpeaksSomethingElseIsRefused) {
  Begin(KeyOf(1), KeyOf(1));
  const std::string plain = "GET / HTTP/1.1\r\nHost: worker\r\n\r\n";
  ASSERT_EQ(send(opened_.get(), plain.data(), plain.size(), 0), static_cast<ssize_t>(plain.size()));

  EXPECT_EQ(accepts_->Handshake(why_accepted_), Flow::kBroken);
  EXPECT_EQ(named_, "");
}

TEST_F(TlsSessionTest, AReplayedHandshakeComesToNothing) {
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(opens_->Handshake(why_opened_), Flow::kBlocked);
  std::string first(4096, ' ');
  const ssize_t read = recv(accepted_.get(), first.data(), first.size(), MSG_PEEK);
  ASSERT_GT(read, 0);
  first.resize(static_cast<std::size_t>(read));
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved));

  SetUp();
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(send(opened_.get(), first.data(), first.size(), 0), read);
  EXPECT_EQ(accepts_->Handshake(why_accepted_), Flow::kBlocked);
  EXPECT_EQ(named_, "rank 2");
  // What it would have to say next is of its own key, which it has not.
  ASSERT_EQ(send(opened_.get(), first.data(), first.size(), 0), read);
  EXPECT_EQ(accepts_->Handshake(why_accepted_), Flow::kBroken);
}

TEST_F(TlsSessionTest, KeysAreReplacedAsTheyAreUsedUp) {
  Begin(KeyOf(1), KeyOf(1), kFewRecords);
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved));
  for (int round = 0; round < 20; ++round) {
    Pass(*opens_, *accepts_, "there " + std::to_string(round));
    Pass(*accepts_, *opens_, std::string(70'000, 'z'));
  }
}

TEST_F(TlsSessionTest, AnEndThatGoesIsSeenToClose) {
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved));
  ASSERT_EQ(opens_->Write({}, BytesOf("last")).bytes, 4u);
  opens_.reset();
  opened_.Close();

  std::array<std::byte, 4> last = {};
  EXPECT_EQ(accepts_->Read({}, last).bytes, 4u);
  EXPECT_EQ(accepts_->Read({}, last).flow, Flow::kClosed);
  // It would end the process by SIGPIPE.
  EXPECT_EQ(accepts_->Write({}, BytesOf("x")).flow, Flow::kBroken);
}

TEST_F(TlsSessionTest, WhatWasReadOnlyInPartIsKnownToBeUnread) {
  Begin(KeyOf(1), KeyOf(1));
  ASSERT_EQ(Shake(), std::pair(Flow::kMoved, Flow::kMoved));
  ASSERT_EQ(opens_->Write({}, BytesOf("four")).bytes, 4u);
  std::array<std::byte, 2> half = {};

  EXPECT_EQ(accepts_->Read({}, half).bytes, 2u);
  EXPECT_TRUE(accepts_->HasUnread());
  EXPECT_EQ(accepts_->Read({}, half).bytes, 2u);
  EXPECT_FALSE(accepts_->HasUnread());
}

}  // namespace
}  // namespace tactus::collective
