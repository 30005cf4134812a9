// Strangers at the listener of a member, beside those that are awaited.

#include "agent/collective/newcomers.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

using testing::HasSubstr;

Deadline InTime() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

class NewcomersTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    listener_ = Listen("127.0.0.1", endpoint_, why);
    ASSERT_TRUE(listener_.open()) << why;
  }

  Descriptor Connect() {
    std::string why;
    Descriptor connection = ConnectTo(endpoint_, InTime(), why);
    EXPECT_TRUE(connection.open()) << why;
    return connection;
  }

  std::unique_ptr<Introduction> Member(std::uint32_t lane) {
    auto member = Introduction::Open(Connect(), theirs_, 0, lane, endpoint_.word);
    member->Advance();
    return member;
  }

  // Until as many have arrived, or some turns have passed.
  std::size_t Turns(Newcomers& newcomers, std::size_t awaited,
                    const std::vector<Introduction*>& members) {
    std::size_t arrived = 0;
    for (int turn = 0; turn < 2000 && arrived < awaited; ++turn) {
      std::string why;
      EXPECT_TRUE(newcomers.Accept(listener_, why)) << why;
      arrived += newcomers.Hear().size();
      for (Introduction* const member : members) member->Advance();
    }
    return arrived;
  }

  const Party ours_ = {.group = {.secret = "s", .generation = 1}, .rank = 0, .size = 2, .lanes = 4};
  const Party theirs_ = {
      .group = {.secret = "s", .generation = 1}, .rank = 1, .size = 2, .lanes = 4};
  Endpoint endpoint_;
  Descriptor listener_;
};

TEST_F(NewcomersTest, AMemberArrivesBehindManyWhoSayNothing) {
  Newcomers newcomers(ours_, endpoint_.word, {.strangers = 8, .at_once = 4});
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(Connect());
  const auto member = Member(0);
  for (int i = 0; i < 50; ++i) strangers.push_back(Connect());

  EXPECT_EQ(Turns(newcomers, 1, {member.get()}), 1u);

  std::vector<pollfd> wanted;
  newcomers.Want(wanted);
  EXPECT_LE(wanted.size(), 8u);
  EXPECT_THAT(newcomers.Told(), HasSubstr("connections to this worker were refused"));
  EXPECT_THAT(newcomers.Told(), HasSubstr("from 127.0.0.1"));
}

TEST_F(NewcomersTest, WhoSaysNothingIsRefusedInTime) {
  Newcomers newcomers(ours_, endpoint_.word, {.patience = Seconds(0.01)});
  const Descriptor stranger = Connect();
  std::string why;
  while (newcomers.Told().empty()) {
    ASSERT_TRUE(newcomers.Accept(listener_, why));
    newcomers.Hear();
  }
  EXPECT_EQ(newcomers.Told(),
            "a connection to this worker was refused, from 127.0.0.1: it did not greet in time");
  std::vector<pollfd> wanted;
  newcomers.Want(wanted);
  EXPECT_TRUE(wanted.empty());
}

// A look whether somebody listens is such a one.
TEST_F(NewcomersTest, OfWhoComesAndLeavesNothingIsTold) {
  Newcomers newcomers(ours_, endpoint_.word, {});
  Connect().Close();
  const auto member = Member(0);

  EXPECT_EQ(Turns(newcomers, 1, {member.get()}), 1u);
  EXPECT_EQ(newcomers.Told(), "");
}

// Whoever sees a member's first word can say it, too, but not what comes next.
TEST_F(NewcomersTest, AFirstWordThatIsRepeatedKeepsNobodyOut) {
  Newcomers newcomers(ours_, endpoint_.word, {.alike = 4});
  const Greeting greeting(theirs_.group, endpoint_.word);
  Hello hello = {.generation = 1, .from = 1, .to = 0, .lane = 0};
  greeting.Sign(hello);
  const auto member = Member(0);
  std::string why;
  ASSERT_TRUE(newcomers.Accept(listener_, why));
  EXPECT_TRUE(newcomers.Hear().empty());
  std::vector<Descriptor> copies;
  for (int i = 0; i < 40; ++i) {
    copies.push_back(Connect());
    ASSERT_EQ(WriteSome(copies.back(), Encode(hello), {}).bytes, kHelloBytes);
  }
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_TRUE(newcomers.Accept(listener_, why));
    EXPECT_TRUE(newcomers.Hear().empty());
  }
  std::vector<pollfd> wanted;
  newcomers.Want(wanted);
  EXPECT_LE(wanted.size(), 4u);
  EXPECT_THAT(newcomers.Told(), HasSubstr("it says what rank 1 has said"));

  EXPECT_EQ(Turns(newcomers, 1, {member.get()}), 1u);
}

TEST_F(NewcomersTest, AllLanesOfAMemberArrive) {
  Newcomers newcomers(ours_, endpoint_.word, {.strangers = 1, .at_once = 1});
  std::vector<std::unique_ptr<Introduction>> members;
  std::vector<Introduction*> all;
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    members.push_back(Member(lane));
    all.push_back(members.back().get());
  }
  EXPECT_EQ(Turns(newcomers, 4, all), 4u);
}

}  // namespace
}  // namespace tactus::collective
