// What an agent makes of what workers of a former agent left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/agent.h"
#include "base/check.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using FromAgent = tactus::agent::v1::FromAgent;

constexpr int kAllUploads = 1'000'000;

bool IsFinished(const FromAgent& message) { return message.from_worker().message().has_finished(); }

class AgentRestartTest : public testing::Test {
 protected:
  ~AgentRestartTest() override {
    if (agent_ != nullptr) End();
    control_.Stop();
  }

  void Begin() {
    const AgentOptions options = {.coordinator = coordinator_.address(),
                                  .node = "node-1",
                                  .devices = {{.name = "cpu:0", .model = "Some CPU"}},
                                  .address = "127.0.0.1",
                                  .state_folder = folder_.File("state"),
                                  .worker_binary = FakeWorker(),
                                  .version = "1.2.3"};
    absl::StatusOr<std::unique_ptr<Agent>> agent =
        Agent::Open(control_, metrics_, options, ++incarnation_);
    TACTUS_CHECK(agent.ok());
    agent_ = *std::move(agent);
    control_.RunAndWait([this] { agent_->Start(); });
    coordinator_.AwaitHello(incarnation_);
  }
  // Waits for nothing: what is not with the coordinator stays here.
  void End() {
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    EXPECT_TRUE(stopped.Await().has_value());
    control_.RunAndWait([this] { agent_.reset(); });
    before_ = coordinator_.received().size();
  }
  // Worker 5 finishes, and its agent ends with a file that is not taken.
  void LeaveAFile() {
    Begin();
    coordinator_.StartWorker(5, "result");
    coordinator_.AwaitExit(5);
    End();
  }
  std::vector<std::string> Kept() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.File("state/jobs/result-1"))) {
      const std::string name = entry.path().filename();
      if (name.starts_with("last-words")) names.push_back(name);
    }
    return names;
  }
  // What the present agent has said.
  std::vector<FromAgent> Said() {
    const std::vector<FromAgent> all = coordinator_.received();
    return {all.begin() + static_cast<std::ptrdiff_t>(before_), all.end()};
  }
  // The present agent's words are with the coordinator, and it knows.
  bool AwaitNothingKept() {
    // What makes it so is an acknowledgement, of which nobody else hears.
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!Kept().empty() && std::chrono::steady_clock::now() < end) ::usleep(1000);
    return Kept().empty();
  }

  TemporaryFolder folder_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  FakeCoordinator coordinator_{{.refused_uploads = kAllUploads, .server_id = "store-1"}};
  std::unique_ptr<Agent> agent_;
  std::uint64_t incarnation_ = 0;
  std::size_t before_ = 0;
};

TEST_F(AgentRestartTest, WhatAFormerAgentDidNotBringUpIsSaidAnewAndBroughtUp) {
  LeaveAFile();
  EXPECT_THAT(Kept(), ElementsAre("last-words-5"));
  coordinator_.Become({.server_id = "store-1"});

  Begin();

  const auto hello = coordinator_.AwaitHello(2).hello();
  EXPECT_THAT(hello.ended_workers(), ElementsAre(5u));
  EXPECT_THAT(hello.running_workers(), IsEmpty());
  ASSERT_TRUE(coordinator_.AwaitUpload("result-1/model.pt"));
  EXPECT_EQ(coordinator_.uploaded().at("result-1/model.pt"), std::string(5 << 19, 'm'));
  EXPECT_EQ(coordinator_.upload_header().worker_id(), 5u);
  EXPECT_TRUE(AwaitNothingKept());
  const std::vector<FromAgent> said = Said();
  ASSERT_THAT(said, SizeIs(2));
  EXPECT_EQ(said[0].from_worker().worker_id(), 5u);
  EXPECT_THAT(said[0].from_worker().message().finished().files(), ElementsAre("model.pt"));
  EXPECT_EQ(said[1].worker_exited().worker_id(), 5u);
}

TEST_F(AgentRestartTest, WordsThatTheCoordinatorNeverGotAreSaidByTheNextAgent) {
  coordinator_.Become({.acknowledges = false, .server_id = "store-1"});
  LeaveAFile();
  EXPECT_TRUE(coordinator_.AwaitUpload("result-1/model.pt"));
  EXPECT_THAT(Kept(), ElementsAre("last-words-5"));
  coordinator_.Become({.server_id = "store-1"});

  Begin();

  EXPECT_TRUE(AwaitNothingKept());
  EXPECT_TRUE(IsFinished(Said().front()));
}

TEST_F(AgentRestartTest, WhatIsWithTheCoordinatorIsNotSaidAgain) {
  coordinator_.Become({.server_id = "store-1"});
  Begin();
  coordinator_.StartWorker(5, "result");
  coordinator_.AwaitExit(5);
  ASSERT_TRUE(coordinator_.AwaitUpload("result-1/model.pt"));
  EXPECT_TRUE(AwaitNothingKept());
  End();

  Begin();

  EXPECT_THAT(coordinator_.AwaitHello(2).hello().ended_workers(), IsEmpty());
}

// Another store gives the same numbers to other workers.
TEST_F(AgentRestartTest, AnotherCoordinatorIsToldNothingAndTheRightOneAll) {
  LeaveAFile();
  coordinator_.Become({.server_id = "store-2"});

  Begin();

  coordinator_.StartWorker(6, "echo");
  coordinator_.SendStop(6);
  coordinator_.AwaitExit(6);
  for (const FromAgent& message : Said()) {
    EXPECT_NE(message.from_worker().worker_id(), 5u);
    EXPECT_NE(message.worker_exited().worker_id(), 5u);
  }
  EXPECT_THAT(coordinator_.uploaded(), IsEmpty());
  EXPECT_THAT(Kept(), ElementsAre("last-words-5"));

  coordinator_.Become({.server_id = "store-1"});
  coordinator_.Drop(0);

  EXPECT_TRUE(coordinator_.AwaitUpload("result-1/model.pt"));
  EXPECT_TRUE(AwaitNothingKept());
}

TEST_F(AgentRestartTest, WordsThatAreNotWholeAreForgotten) {
  LeaveAFile();
  std::ofstream(folder_.File("state/jobs/result-1/last-words-5")) << "store-1\n{\"finis";
  coordinator_.Become({.server_id = "store-1"});

  Begin();

  EXPECT_THAT(coordinator_.AwaitHello(2).hello().ended_workers(), IsEmpty());
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(AgentRestartTest, WordsThatCannotBeReadJustNowStay) {
  LeaveAFile();
  const std::string words = folder_.File("state/jobs/result-1/last-words-5");
  const std::string away = folder_.File("away");
  std::filesystem::rename(words, away);
  std::filesystem::create_symlink(words, words);  // to itself: it cannot be opened
  coordinator_.Become({.server_id = "store-1"});

  Begin();

  EXPECT_THAT(coordinator_.AwaitHello(2).hello().ended_workers(), IsEmpty());
  EXPECT_THAT(Kept(), ElementsAre("last-words-5"));
  End();
  std::filesystem::rename(away, words);

  Begin();

  EXPECT_THAT(coordinator_.AwaitHello(3).hello().ended_workers(), ElementsAre(5u));
  EXPECT_TRUE(AwaitNothingKept());
}

TEST_F(AgentRestartTest, AFileThatIsRefusedForGoodEndsTheWaiting) {
  LeaveAFile();
  coordinator_.Become({.refused_uploads = kAllUploads,
                       .upload_refusal = grpc::StatusCode::INVALID_ARGUMENT,
                       .server_id = "store-1"});

  Begin();

  const FromAgent failed = coordinator_.AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_failed(); });
  EXPECT_EQ(failed.from_worker().worker_id(), 5u);
  EXPECT_TRUE(AwaitNothingKept());
}

}  // namespace
}  // namespace tactus::agent
