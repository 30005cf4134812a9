#include "agent/worker/agent_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

// The agent's end of a link.
class Peer {
 public:
  Peer() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~Peer() { Close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int TakeWorkerEnd() { return ends_[1]; }
  void Write(const std::string& text) {
    EXPECT_EQ(write(ends_[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Of what the worker says, but for where it stands, which it says on its own.
  std::string ReadLine() {
    std::string line = ReadAnyLine();
    while (line.find("\"standing\"") != std::string::npos) line = ReadAnyLine();
    return line;
  }
  std::string ReadAnyLine() {
    std::size_t end;
    while ((end = input_.find('\n', begin_)) == std::string::npos) {
      input_.erase(0, std::exchange(begin_, 0));
      char chunk[1 << 16];
      const ssize_t count = read(ends_[0], chunk, sizeof(chunk));
      if (count <= 0) return {};
      input_.append(chunk, static_cast<std::size_t>(count));
    }
    const std::size_t begin = std::exchange(begin_, end + 1);
    return input_.substr(begin, end - begin);
  }
  void Close() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  std::string input_;  // read and not yet given out, from begin_ on
  std::size_t begin_ = 0;
};

TEST(AgentLinkTest, MessagesComeInOrderWhateverTheirCutting) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  peer.Write(R"({"stop": {"reason": "a"}})"
             "\n"
             R"({"stop": {"rea)");
  const auto first = link.Receive();
  peer.Write(R"(son": "b"}})"
             "\n");
  const auto second = link.Receive();

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(std::get<StopMessage>(*first).reason, "a");
  EXPECT_EQ(std::get<StopMessage>(*second).reason, "b");
  EXPECT_FALSE(link.Poll().has_value());
}

TEST(AgentLinkTest, AMessageIsAwaitedAsLongAsIsSaid) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  EXPECT_FALSE(link.Await(Seconds(0.01)));
  peer.Write(R"({"stop": {"reason": "a"}})"
             "\n");

  EXPECT_TRUE(link.Await(Seconds(30)));
  EXPECT_TRUE(link.Await(Seconds(0))) << "it is there still";
  EXPECT_TRUE(link.Receive().ok());
  EXPECT_FALSE(link.Await(Seconds(0.01)));
  link.HangUp();
  EXPECT_TRUE(link.Await(Seconds(30))) << "its end is an answer";
}

TEST(AgentLinkTest, SendsWholeLines) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());

  link.Send(ReadyMessage{.parameters = 5});
  link.Send(FailedMessage{.field = "model", .message = "no"});

  EXPECT_EQ(peer.ReadLine(), Format(ReadyMessage{.parameters = 5}));
  EXPECT_EQ(peer.ReadLine(), Format(FailedMessage{.field = "model", .message = "no"}));
  EXPECT_TRUE(link.Flush(Seconds(10)));
}

// Whatever the training thread does: here it waits for a line.
TEST(AgentLinkTest, ItSaysByItselfWhereTheWorkerStands) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  link.BeginStandings();
  link.standpoint().CountBatch();
  link.standpoint().CountBatch();

  EXPECT_EQ(peer.ReadAnyLine(), Format(StandingMessage{.batches = 2}));
  link.standpoint().CountBatch();
  EXPECT_EQ(peer.ReadAnyLine(), Format(StandingMessage{.batches = 3}));
}

TEST(StandpointTest, WhileItIsInAGroupItsTransportTells) {
  class Waiting : public collective::Transport {
   public:
    int rank() const override { return 0; }
    int size() const override { return 3; }
    std::unique_ptr<collective::Collective> Start(const collective::Operation&) override {
      return nullptr;
    }
    void Abort(const std::string&) override {}
    collective::Awaiting awaiting() override {
      return {.collective = true, .peers = {2}, .bytes_moved = 9};
    }
  };
  Waiting transport;
  Standpoint standpoint;
  standpoint.Enter(4, transport);

  const StandingMessage standing = standpoint.Now();
  EXPECT_EQ(standing.generation, 4u);
  EXPECT_TRUE(standing.waits);
  EXPECT_EQ(standing.awaits, std::vector<std::uint32_t>{2});
  EXPECT_EQ(standing.bytes, 9u);

  standpoint.Leave();
  EXPECT_FALSE(standpoint.Now().waits);
}

TEST(AgentLinkTest, AnAgentThatIsGoneEndsTheLinkAfterWhatItSaid) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  peer.Write(R"({"stop": {}})"
             "\n");
  peer.Close();

  EXPECT_TRUE(link.Receive().ok());
  EXPECT_EQ(link.Receive().status().code(), absl::StatusCode::kUnavailable);
  link.Send(ReadyMessage{});  // goes nowhere, and nothing happens
  EXPECT_FALSE(link.Flush(Seconds(10)));
}

TEST(AgentLinkTest, ALineThatIsNoMessageEndsTheLink) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  peer.Write("hello\n");

  EXPECT_EQ(link.Receive().status().code(), absl::StatusCode::kInvalidArgument);
}

// An agent that reads nothing: sending never blocks, what matters survives, the oldest reports do
// not.
TEST(AgentLinkTest, AStuckAgentCostsReportsAndNothingElse) {
  Peer peer;
  AgentLink link(peer.TakeWorkerEnd());
  link.Send(EndpointMessage{.generation = 1});
  const std::uint64_t sent = AgentLink::kLinesMax + 10000;
  for (std::uint64_t round = 0; round < sent; ++round) {
    link.Send(ReportMessage{.report = {.round = round}});
  }
  link.Send(FinishedMessage{.reason = "done"});

  EXPECT_EQ(peer.ReadLine(), Format(EndpointMessage{.generation = 1}));
  std::uint64_t reports = 0;
  std::string last;
  for (std::string line = peer.ReadLine(); line.find("\"finished\"") == std::string::npos;
       line = peer.ReadLine()) {
    ++reports;
    last = line;
  }
  EXPECT_LT(reports, sent);
  EXPECT_GE(reports, AgentLink::kLinesMax - 2);
  EXPECT_EQ(last, Format(ReportMessage{.report = {.round = sent - 1}}));
}

TEST(AgentLinkTest, APathThatIsNoSocketIsSaid) {
  EXPECT_EQ(AgentLink::Connect("/nonexistent/socket").status().message(),
            "socket: '/nonexistent/socket': No such file or directory");
  EXPECT_EQ(AgentLink::Connect(std::string(200, 'x')).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tactus::worker
