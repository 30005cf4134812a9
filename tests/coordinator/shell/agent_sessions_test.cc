#include "coordinator/shell/agent_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/status.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;

// Remembers what it was told to send; every write is over at once unless `hold` is set.
class FakeStream : public AgentStream {
 public:
  explicit FakeStream(AgentSessions& sessions) : sessions_(sessions) {}

  void Send(const agent::v1::ToAgent& message) override {
    sent.push_back(message);
    if (!hold) sessions_.Sent(this);
  }
  void Close(const absl::Status& status) override { closed = status; }
  std::string peer() const override { return "ipv4:10.0.0.5:41234"; }

  std::vector<std::uint64_t> Sequences() const {
    std::vector<std::uint64_t> sequences;
    for (const agent::v1::ToAgent& message : sent) sequences.push_back(message.sequence());
    return sequences;
  }

  std::vector<agent::v1::ToAgent> sent;
  absl::Status closed;
  bool hold = false;

 private:
  AgentSessions& sessions_;
};

class AgentSessionsTest : public testing::Test {
 protected:
  std::shared_ptr<FakeStream> Connect(std::uint64_t incarnation, std::uint64_t acknowledged = 0) {
    auto stream = std::make_shared<FakeStream>(sessions_);
    agent::v1::FromAgent first;
    first.set_acknowledged(acknowledged);
    first.mutable_hello()->set_node("a");
    first.mutable_hello()->set_incarnation(incarnation);
    first.mutable_hello()->set_agent_version(version_);
    first.mutable_hello()->set_server_id(obeys_.server);
    first.mutable_hello()->set_epoch(obeys_.epoch);
    for (const std::uint64_t worker : running_) first.mutable_hello()->add_running_workers(worker);
    for (const std::uint64_t worker : ended_) first.mutable_hello()->add_ended_workers(worker);
    v1::Device* device = first.mutable_hello()->add_devices();
    device->set_name("cpu:0");
    device->set_kind(v1::DEVICE_KIND_CPU);
    opened_ = sessions_.Open(stream, first);
    return stream;
  }

  // Says that worker `sequence` exited.
  void Say(const std::shared_ptr<FakeStream>& stream, std::uint64_t sequence,
           std::uint64_t acknowledged = 0) {
    agent::v1::FromAgent message;
    message.set_sequence(sequence);
    message.set_acknowledged(acknowledged);
    message.mutable_worker_exited()->set_worker_id(sequence);
    sessions_.Receive(stream.get(), message, [this] { ++reads_; });
  }

  void SayLog(const std::shared_ptr<FakeStream>& stream, std::uint64_t sequence,
              const std::string& text) {
    agent::v1::FromAgent message;
    message.set_sequence(sequence);
    message.mutable_log_lines()->set_text(text);
    sessions_.Receive(stream.get(), message, [this] { ++reads_; });
  }

  void Heartbeat(const std::shared_ptr<FakeStream>& stream) {
    agent::v1::FromAgent message;
    message.mutable_heartbeat();
    sessions_.Receive(stream.get(), message, [this] { ++reads_; });
  }

  void Tell(std::uint64_t worker) {
    agent::v1::ToAgent message;
    message.mutable_stop_worker()->set_worker_id(worker);
    sessions_.Tell("a", message);
  }

  void Record(const job::Event& event, std::function<void()> done) {
    if (const auto* joined = std::get_if<job::NodeJoined>(&event)) {
      events_.push_back(joined->same_incarnation ? "rejoined" : "joined");
    } else if (const auto* lost = std::get_if<job::NodeLost>(&event)) {
      events_.push_back("lost");
      for (const WorkerId worker : lost->ended_workers) {
        events_.back() += " but " + std::to_string(worker.value);
      }
    } else if (std::holds_alternative<job::NodeUnreachable>(event)) {
      events_.push_back("unreachable");
    } else {
      events_.push_back(std::to_string(std::get<job::WorkerExited>(event).worker.value));
    }
    if (slow_) {
      pending_.push_back(std::move(done));
    } else {
      done();
    }
  }

  std::vector<std::string> events_;
  std::vector<std::function<void()>> pending_;  // of events while slow_
  bool slow_ = false;
  int reads_ = 0;
  std::string version_;                  // of the agent; empty: it does not say
  protocol::CoordinatorIdentity obeys_;  // the agent
  std::vector<std::uint64_t> running_;   // on its node
  std::vector<std::uint64_t> ended_;     // of which it has to tell
  absl::Status opened_;
  std::set<std::uint64_t> elsewhere_;  // workers of other nodes
  AgentSessions sessions_{
      [this](const job::Event& event, std::function<void()> done) {
        Record(event, std::move(done));
      },
      [this](WorkerId worker, const std::string&) { return elsewhere_.contains(worker.value); }};
};

TEST_F(AgentSessionsTest, WhatIsSaidOfAnotherNodesWorkerIsDropped) {
  const auto stream = Connect(1);
  elsewhere_ = {2, 3};

  Say(stream, 1);
  Say(stream, 2);  // that it exited
  agent::v1::FromAgent report;
  report.set_sequence(3);
  report.mutable_from_worker()->set_worker_id(3);
  report.mutable_from_worker()->mutable_message()->mutable_report();
  sessions_.Receive(stream.get(), report, [this] { ++reads_; });
  Say(stream, 4);

  EXPECT_THAT(events_, ElementsAre("joined", "1", "4"));
  EXPECT_EQ(reads_, 4);  // its agent's own words are heard on
}

TEST_F(AgentSessionsTest, WhoIsExpelledIsLostWithItsWorkersAndMayComeBackAfresh) {
  const auto stream = Connect(1);
  sessions_.Expel(stream.get(), "its certificate is revoked");
  Say(stream, 1);  // of what was on its way

  EXPECT_THAT(events_, ElementsAre("joined", "lost"));
  EXPECT_FALSE(sessions_.Nodes().front().connected);
  Connect(1);
  EXPECT_THAT(events_, ElementsAre("joined", "lost", "joined"));
}

TEST_F(AgentSessionsTest, AStreamIsWelcomedBeforeAnythingElse) {
  const auto stream = Connect(1);
  Tell(7);

  ASSERT_TRUE(opened_.ok());
  ASSERT_EQ(stream->sent.size(), 2u);
  EXPECT_EQ(stream->sent[0].welcome().heartbeat_interval().seconds(), 2);
  EXPECT_THAT(stream->Sequences(), ElementsAre(0, 1));
  EXPECT_THAT(events_, ElementsAre("joined"));
}

TEST_F(AgentSessionsTest, EachMessageIsHandledOnceOverTwoStreams) {
  const auto first = Connect(1);
  Say(first, 1);
  Say(first, 2);
  sessions_.Closed(first.get());

  const auto second = Connect(1);
  Say(second, 2);
  Say(second, 3);

  EXPECT_EQ(second->sent[0].welcome().acknowledged(), 2u);
  EXPECT_THAT(events_, ElementsAre("joined", "1", "2", "rejoined", "3"));
}

TEST_F(AgentSessionsTest, WhatTheAgentMissedIsSentAgain) {
  const auto first = Connect(1);
  for (std::uint64_t i = 1; i <= 3; ++i) Tell(i);
  sessions_.Closed(first.get());
  Tell(4);

  const auto second = Connect(1, 2);

  EXPECT_THAT(second->Sequences(), ElementsAre(0, 3, 4));
}

TEST_F(AgentSessionsTest, OneMessageIsWrittenAtATime) {
  const auto stream = Connect(1);
  stream->hold = true;
  Tell(1);
  Tell(2);
  EXPECT_THAT(stream->Sequences(), ElementsAre(0, 1));

  sessions_.Sent(stream.get());

  EXPECT_THAT(stream->Sequences(), ElementsAre(0, 1, 2));
}

TEST_F(AgentSessionsTest, AcknowledgedIsOnlyWhatIsDurable) {
  const auto stream = Connect(1);
  slow_ = true;
  Say(stream, 1);
  sessions_.Beat();
  EXPECT_EQ(stream->sent.back().acknowledged(), 0u);
  EXPECT_EQ(reads_, 0);

  pending_.at(0)();
  sessions_.Beat();

  EXPECT_EQ(stream->sent.back().acknowledged(), 1u);
  EXPECT_EQ(reads_, 1);
}

TEST_F(AgentSessionsTest, AGapInTheNumbersEndsTheStream) {
  const auto stream = Connect(1);
  Say(stream, 1);
  Say(stream, 3);

  EXPECT_TRUE(absl::IsAborted(stream->closed));
  EXPECT_THAT(events_, ElementsAre("joined", "1"));
}

TEST_F(AgentSessionsTest, ARestartedCoordinatorResumesWithWhatTheAgentSays) {
  const auto stream = Connect(1, 17);
  Say(stream, 31);
  Say(stream, 32);
  Tell(1);

  EXPECT_THAT(stream->Sequences(), ElementsAre(0, 18));
  EXPECT_THAT(events_, ElementsAre("joined", "31", "32"));
}

TEST_F(AgentSessionsTest, AnAgentUnheardForFiveBeatsIsCalledUnreachableOnce) {
  const auto stream = Connect(1);
  for (int i = 0; i < 5; ++i) sessions_.Beat();
  EXPECT_THAT(events_, ElementsAre("joined"));

  for (int i = 0; i < 20; ++i) sessions_.Beat();

  EXPECT_THAT(events_, ElementsAre("joined", "unreachable"));
  EXPECT_FALSE(stream->closed.ok());
}

TEST_F(AgentSessionsTest, AnAgentThatWasForgottenAndComesBackIsANewOne) {
  Say(Connect(1), 1);
  EXPECT_TRUE(sessions_.Nodes().at(0).expected);
  for (int i = 0; i < 20; ++i) sessions_.Beat();
  EXPECT_FALSE(sessions_.Nodes().at(0).expected);
  Tell(3);

  sessions_.Forget("a");

  EXPECT_TRUE(sessions_.Nodes().empty());
  sessions_.Beat();
  const auto again = Connect(1);
  Say(again, 2);
  EXPECT_THAT(events_, ElementsAre("joined", "1", "unreachable", "joined", "2"));
  EXPECT_THAT(again->Sequences(), ElementsAre(0));
}

TEST_F(AgentSessionsTest, AHeartbeatKeepsTheAgent) {
  const auto stream = Connect(1);
  for (int i = 0; i < 20; ++i) {
    if (i % 4 == 0) Heartbeat(stream);
    sessions_.Beat();
  }

  EXPECT_THAT(events_, ElementsAre("joined"));
}

TEST_F(AgentSessionsTest, SilenceWhileItsMessageWaitsHereIsNotTheAgents) {
  const auto stream = Connect(1);
  slow_ = true;
  Say(stream, 1);
  for (int i = 0; i < 20; ++i) sessions_.Beat();

  EXPECT_THAT(events_, ElementsAre("joined", "1"));
}

TEST_F(AgentSessionsTest, SilenceAfterAStreamBrokeWhileItsMessageWaitsIsTheAgents) {
  const auto stream = Connect(1);
  slow_ = true;
  Say(stream, 1);
  sessions_.Closed(stream.get());
  for (int i = 0; i < 6; ++i) sessions_.Beat();

  EXPECT_THAT(events_, ElementsAre("joined", "1", "unreachable"));
}

TEST_F(AgentSessionsTest, AMessageThatWaitsOverTwoStreamsIsAcknowledgedOnlyWhenItIsDurable) {
  const auto first = Connect(1);
  slow_ = true;
  Say(first, 1);
  sessions_.Closed(first.get());
  const auto second = Connect(1);
  Say(second, 1);  // again, as it is not acknowledged
  SayLog(second, 2, "output");
  sessions_.Beat();
  EXPECT_EQ(second->sent.back().acknowledged(), 0u);

  for (const auto& done : std::exchange(pending_, {})) done();
  sessions_.Beat();

  EXPECT_EQ(second->sent.back().acknowledged(), 2u);
  EXPECT_THAT(events_, ElementsAre("joined", "1", "rejoined"));
}

TEST_F(AgentSessionsTest, AnAgentThatDialsAgainAndAgainWhileNothingIsDurableIsHeldOff) {
  slow_ = true;
  std::uint64_t sequence = 0;
  while (pending_.size() < 10 * AgentSessions::kUnfinishedMax) {
    const auto stream = Connect(1);
    if (!opened_.ok()) break;
    Say(stream, ++sequence);
    sessions_.Closed(stream.get());
  }
  EXPECT_TRUE(absl::IsUnavailable(opened_)) << opened_;
  EXPECT_LE(pending_.size(), AgentSessions::kUnfinishedMax + 1);

  for (const auto& done : std::exchange(pending_, {})) done();
  Connect(1);

  EXPECT_TRUE(opened_.ok()) << opened_;
}

TEST_F(AgentSessionsTest, AnAgentOfAnotherVersionIsRefused) {
  version_ = "999.1.0";
  Connect(1);

  EXPECT_TRUE(absl::IsFailedPrecondition(opened_));
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(sessions_.Nodes().empty());
}

TEST_F(AgentSessionsTest, AnAgentLearnsWhoTheCoordinatorIs) {
  sessions_.SetIdentity({.server = "ours", .epoch = 7});

  const auto stream = Connect(1);

  EXPECT_EQ(stream->sent.at(0).welcome().server_id(), "ours");
  EXPECT_EQ(stream->sent.at(0).welcome().epoch(), 7u);
}

TEST_F(AgentSessionsTest, AnAgentWithWorkersOfAnotherCoordinatorIsNoNodeOfOurs) {
  sessions_.SetIdentity({.server = "ours", .epoch = 7});
  running_ = {5};
  for (const protocol::CoordinatorIdentity& other :
       {protocol::CoordinatorIdentity{.server = "theirs", .epoch = 7},
        protocol::CoordinatorIdentity{.server = "ours", .epoch = 8}}) {
    obeys_ = other;
    Connect(1);

    EXPECT_TRUE(absl::IsFailedPrecondition(opened_)) << opened_;
    EXPECT_EQ(runtime::ReasonOf(opened_).reason, "AGENT_OF_ANOTHER_COORDINATOR");
  }
  EXPECT_TRUE(sessions_.Nodes().empty());
  obeys_ = {.server = "ours", .epoch = 6};
  Connect(1);

  EXPECT_TRUE(opened_.ok()) << opened_;
}

TEST_F(AgentSessionsTest, AnAgentWithoutWorkersIsTakenFromAnotherCoordinator) {
  sessions_.SetIdentity({.server = "ours", .epoch = 7});
  obeys_ = {.server = "theirs", .epoch = 9};

  Connect(1);

  EXPECT_THAT(events_, ElementsAre("joined"));
}

// With another coordinator its numbers went on, in both directions.
TEST_F(AgentSessionsTest, AnAgentThatObeyedAnotherCoordinatorMeanwhileBeginsAnew) {
  sessions_.SetIdentity({.server = "ours", .epoch = 4});
  const auto first = Connect(1);
  Say(first, 1);
  sessions_.Closed(first.get());
  Tell(5);

  obeys_ = {.server = "others", .epoch = 9};
  const auto second = Connect(1, 30);
  Say(second, 21);
  Say(second, 22);
  Tell(6);

  EXPECT_TRUE(second->closed.ok()) << second->closed;
  EXPECT_THAT(events_, ElementsAre("joined", "1", "lost", "joined", "21", "22"));
  EXPECT_THAT(second->Sequences(), ElementsAre(0, 31));
  EXPECT_EQ(second->sent.back().acknowledged(), 22u);
}

TEST_F(AgentSessionsTest, AlsoOneThatObeyedALaterCoordinatorOfThisStore) {
  sessions_.SetIdentity({.server = "ours", .epoch = 4});
  const auto first = Connect(1);
  Say(first, 1);

  obeys_ = {.server = "ours", .epoch = 5};
  Connect(1, 30);

  EXPECT_TRUE(opened_.ok()) << opened_;
  EXPECT_THAT(events_, ElementsAre("joined", "1", "lost", "joined"));
}

TEST_F(AgentSessionsTest, AlsoOneThatHasHeardWelcomeAndNeverSaidSo) {
  sessions_.SetIdentity({.server = "ours", .epoch = 4});
  const auto first = Connect(1);
  Tell(5);
  sessions_.Closed(first.get());

  obeys_ = {.server = "others", .epoch = 9};
  const auto second = Connect(1, 30);
  Tell(6);

  EXPECT_THAT(events_, ElementsAre("joined", "lost", "joined"));
  EXPECT_THAT(second->Sequences(), ElementsAre(0, 31));
}

TEST_F(AgentSessionsTest, AnAgentThatHasNotHeardWelcomeIsStillTheOthers) {
  sessions_.SetIdentity({.server = "ours", .epoch = 4});
  obeys_ = {.server = "others", .epoch = 9};
  const auto first = Connect(1, 30);
  Tell(5);
  sessions_.Closed(first.get());

  const auto second = Connect(1, 30);

  EXPECT_THAT(events_, ElementsAre("joined", "rejoined"));
  EXPECT_THAT(second->Sequences(), ElementsAre(0, 31));
}

TEST_F(AgentSessionsTest, WhatWorkersWriteIsNoEventAndIsAcknowledged) {
  std::vector<std::string> logs;
  sessions_.SetTakeLog([&](const std::string& node, const agent::v1::LogLines& lines) {
    logs.push_back(node + ":" + lines.text());
  });
  const auto stream = Connect(1);
  SayLog(stream, 1, "one");
  SayLog(stream, 2, "two");
  SayLog(stream, 2, "two");
  sessions_.Beat();

  EXPECT_THAT(logs, ElementsAre("a:one", "a:two"));
  EXPECT_THAT(events_, ElementsAre("joined"));
  EXPECT_EQ(stream->sent.back().acknowledged(), 2u);
  EXPECT_EQ(reads_, 3);
}

TEST_F(AgentSessionsTest, AnAgentThatComesBackAfterItWasUnreachableGoesOnWhereItWas) {
  const auto first = Connect(1);
  Tell(1);
  Say(first, 1);
  sessions_.Closed(first.get());
  Tell(2);
  for (int i = 0; i < 6; ++i) sessions_.Beat();
  Tell(3);

  const auto second = Connect(1, 1);
  Say(second, 1);
  Say(second, 2);

  EXPECT_THAT(events_, ElementsAre("joined", "1", "unreachable", "rejoined", "2"));
  EXPECT_THAT(second->Sequences(), ElementsAre(0, 2, 3));
  EXPECT_EQ(second->sent[1].stop_worker().worker_id(), 2u);
}

TEST_F(AgentSessionsTest, AnAgentThatIsBackMayBeMissedAgain) {
  Connect(1);
  for (int i = 0; i < 6; ++i) sessions_.Beat();
  Connect(1);
  for (int i = 0; i < 6; ++i) sessions_.Beat();

  EXPECT_THAT(events_, ElementsAre("joined", "unreachable", "rejoined", "unreachable"));
}

TEST_F(AgentSessionsTest, ANewIncarnationOfAnUnreachableAgentMeansThatTheFormerOneIsLost) {
  Connect(1);
  for (int i = 0; i < 6; ++i) sessions_.Beat();

  Connect(2);

  EXPECT_THAT(events_, ElementsAre("joined", "unreachable", "lost", "joined"));
}

TEST_F(AgentSessionsTest, ANewIncarnationMeansThatTheFormerOneIsLost) {
  const auto first = Connect(1);
  sessions_.Closed(first.get());

  Connect(2);

  EXPECT_THAT(events_, ElementsAre("joined", "lost", "joined"));
}

TEST_F(AgentSessionsTest, ANewIncarnationMayHaveToTellOfTheFormerOnesWorkers) {
  const auto first = Connect(1);
  sessions_.Closed(first.get());
  ended_ = {7};

  Connect(2);

  EXPECT_THAT(events_, ElementsAre("joined", "lost but 7", "joined"));
}

TEST_F(AgentSessionsTest, ANameInUseByALiveAgentIsRefused) {
  const auto first = Connect(1);

  Connect(2);

  EXPECT_TRUE(absl::IsAlreadyExists(opened_));
  EXPECT_TRUE(first->closed.ok());
  EXPECT_THAT(events_, ElementsAre("joined"));
}

TEST_F(AgentSessionsTest, AnAgentThatAcknowledgesNothingIsToldAnewWhenTheBoxWasFull) {
  const auto stream = Connect(1);
  stream->hold = true;
  for (std::size_t i = 0; i <= AgentSessions::kOutboxMax; ++i) Tell(i);
  EXPECT_THAT(events_, ElementsAre("joined", "unreachable"));

  Connect(1);

  // The core has to say again what the workers are to know.
  EXPECT_THAT(events_, ElementsAre("joined", "unreachable", "joined"));
}

TEST_F(AgentSessionsTest, AStreamThatDoesNotBeginWithHelloIsRefused) {
  auto stream = std::make_shared<FakeStream>(sessions_);
  agent::v1::FromAgent first;
  first.mutable_heartbeat();

  EXPECT_TRUE(absl::IsInvalidArgument(sessions_.Open(stream, first)));
}

TEST_F(AgentSessionsTest, NodesAreListedAlsoWhenTheyAreGone) {
  const auto stream = Connect(1);
  sessions_.Closed(stream.get());

  const std::vector<NodeView> nodes = sessions_.Nodes();

  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "a");
  EXPECT_FALSE(nodes[0].connected);
  EXPECT_EQ(nodes[0].devices.at(0).name, "cpu:0");
}

TEST_F(AgentSessionsTest, ANodeIsListedWithTheAddressFromWhichItsAgentDialled) {
  Connect(7);

  ASSERT_EQ(sessions_.Nodes().size(), 1u);
  EXPECT_EQ(sessions_.Nodes().front().peer, "ipv4:10.0.0.5:41234");
}

}  // namespace
}  // namespace tactus::service
