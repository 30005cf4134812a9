// The agent between a real gRPC server and real processes.

#include "agent/daemon/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/sha256.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::HasSubstr;
using FromAgent = tactus::agent::v1::FromAgent;

class AgentTest : public testing::Test {
 protected:
  ~AgentTest() override {
    if (agent_ == nullptr) return;
    if (!stopped_) Stop(Seconds(0));
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  void Open(const FakeCoordinator::Manners& manners) {
    coordinator_ = std::make_unique<FakeCoordinator>(manners);
    options_.coordinator = coordinator_->address();
    options_.node = "node-1";
    options_.devices = {{.name = "cpu:0", .model = "Some CPU", .uuid = "u-1", .memory_bytes = 5},
                        {.name = "cpu:1", .model = "Some CPU", .emulated_speed = 0.5}};
    options_.emulated_cpu_factor = 1.5;
    options_.address = "127.0.0.1";
    options_.state_folder = folder_.File("state");
    if (options_.worker_binary.empty()) options_.worker_binary = FakeWorker();
    options_.version = "1.2.3";
    options_.labels = {{"zone", "west"}};
    options_.taints = {"gpu=only"};
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, options_, 77);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    control_.RunAndWait(
        [this] { agent_->Start([this](const absl::Status& status) { refused_.Set(status); }); });
  }

  // False when the agent did not get to its end.
  bool Stop(Duration grace) {
    stopped_ = true;
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(grace, [&] { stopped.Set(true); }); });
    return stopped.Await().has_value();
  }

  // Starts a worker that says its process id.
  pid_t StartEcho(std::uint64_t id, const std::string& behaviour = "echo") {
    coordinator_->StartWorker(id, behaviour);
    const FromAgent ready = coordinator_->AwaitMessage([id](const FromAgent& message) {
      return message.from_worker().worker_id() == id && message.from_worker().message().has_ready();
    });
    return static_cast<pid_t>(ready.from_worker().message().ready().parameters());
  }
  std::string AwaitFailure() {
    return coordinator_
        ->AwaitMessage(
            [](const FromAgent& message) { return message.from_worker().message().has_failed(); })
        .from_worker()
        .message()
        .failed()
        .message();
  }

  TemporaryFolder folder_;
  AgentOptions options_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<Agent> agent_;
  bool stopped_ = false;
  Once<absl::Status> refused_;
};

std::vector<std::uint64_t> Sequences(const std::vector<FromAgent>& messages) {
  std::vector<std::uint64_t> sequences;
  for (const FromAgent& message : messages) sequences.push_back(message.sequence());
  return sequences;
}

TEST_F(AgentTest, HelloSaysWhoAndWhatItIs) {
  Open({});

  const FromAgent hello = coordinator_->AwaitHello(1);

  EXPECT_EQ(hello.sequence(), 0u);
  EXPECT_EQ(hello.hello().node(), "node-1");
  EXPECT_EQ(hello.hello().incarnation(), 77u);
  EXPECT_EQ(hello.hello().agent_version(), "1.2.3");
  ASSERT_EQ(hello.hello().devices_size(), 2);
  EXPECT_EQ(hello.hello().devices(1).name(), "cpu:1");
  EXPECT_EQ(hello.hello().devices(1).kind(), tactus::v1::DEVICE_KIND_CPU);
  EXPECT_EQ(hello.hello().devices(1).emulated_speed(), 0.5);
  EXPECT_EQ(hello.hello().devices(0).uuid(), "u-1");
  EXPECT_EQ(hello.hello().devices(0).memory_bytes(), 5u);
  ASSERT_EQ(hello.hello().labels().size(), 2u);
  EXPECT_EQ(hello.hello().labels().at("zone"), "west");
  EXPECT_THAT(hello.hello().labels().at("tactus/sandbox"),
              testing::AnyOf("full", testing::StartsWith("lacks ")));
  EXPECT_THAT(hello.hello().taints(), testing::ElementsAre("gpu=only"));
}

TEST_F(AgentTest, ACoordinatorOfAnotherVersionIsDialledOnce) {
  Open({.other_version = true});

  const std::optional<absl::Status> refused = refused_.Await();

  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(std::string(refused->message()), HasSubstr("this is 9.9.9"));
  EXPECT_TRUE(Stop(Seconds(0)));
}

TEST_F(AgentTest, AnAgentWithWorkersObeysNoStrangerAndNoOlderEpoch) {
  const FakeCoordinator::Manners ours = {.server_id = "ours", .epoch = 7};
  Open(ours);
  const pid_t worker = StartEcho(5);
  for (const FakeCoordinator::Manners& other :
       {FakeCoordinator::Manners{.server_id = "theirs", .epoch = 9},
        FakeCoordinator::Manners{.server_id = "ours", .epoch = 6},
        FakeCoordinator::Manners{.other_version = true}}) {
    coordinator_->Become(other);
    const std::size_t hellos = coordinator_->hellos();
    coordinator_->Drop(1);

    // It dials on, and says whose workers it has.
    const FromAgent hello = coordinator_->AwaitHello(hellos + 2);

    EXPECT_EQ(hello.hello().server_id(), "ours");
    EXPECT_EQ(hello.hello().epoch(), 7u);
    EXPECT_THAT(hello.hello().running_workers(), testing::ElementsAre(5));
    EXPECT_EQ(::kill(worker, 0), 0);
    coordinator_->Become(ours);
    coordinator_->AwaitHello(coordinator_->hellos() + 1);
  }
  coordinator_->SendPlan(5, 8);

  const FromAgent report = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_report(); });
  EXPECT_EQ(report.from_worker().message().report().plan_version(), 8u);
}

TEST_F(AgentTest, AnAgentWithoutWorkersTakesUpWithAnother) {
  Open({.server_id = "ours", .epoch = 7});
  coordinator_->AwaitHello(1);
  coordinator_->Become({.server_id = "theirs", .epoch = 1});
  coordinator_->Drop(0);
  coordinator_->AwaitHello(2);

  EXPECT_GT(StartEcho(6), 0);
}

TEST_F(AgentTest, AWorkerIsStartedRelayedBothWaysAndItsExitReported) {
  Open({});
  EXPECT_GT(StartEcho(5), 0);

  coordinator_->SendPlan(5, 8);
  const FromAgent report = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_report(); });
  coordinator_->SendStop(5);
  const tactus::agent::v1::WorkerExited exit = coordinator_->AwaitExit(5);

  EXPECT_EQ(report.from_worker().message().report().plan_version(), 8u);
  EXPECT_EQ(exit.exit_code(), 0);
  EXPECT_EQ(exit.signal(), 0);
  const std::vector<FromAgent> received = coordinator_->received();
  ASSERT_EQ(received.size(), 4u);
  EXPECT_TRUE(received[2].from_worker().message().has_finished());
  EXPECT_EQ(Sequences(received), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST_F(AgentTest, StartCarriesWhatOnlyTheAgentKnows) {
  Open({});
  coordinator_->StartWorker(5, "start", "cpu:1");

  const std::string start = AwaitFailure();

  EXPECT_THAT(start, HasSubstr(R"("workerId":"5")"));
  EXPECT_THAT(start, HasSubstr(R"("device":"cpu:1")"));
  EXPECT_THAT(start, HasSubstr(R"("emulatedSpeed":0.5)"));
  EXPECT_THAT(start, HasSubstr(R"("emulatedCpuFactor":1.5)"));
  EXPECT_THAT(start, HasSubstr(R"("address":"127.0.0.1")"));
  EXPECT_THAT(start, HasSubstr(folder_.File("state/jobs/start-1/result")));
}

tactus::v1::Start Needing(const std::string& sha256) {
  tactus::v1::Start start;
  start.mutable_spec()->mutable_model()->set_torchscript("sha256:" + sha256);
  return start;
}

TEST_F(AgentTest, FilesNamedByTheirHashesAreFetchedBeforeTheWorkerStarts) {
  Open({});
  const std::string checkpoint = coordinator_->artifacts().Add("checkpoint");
  const std::string model = coordinator_->artifacts().Add("model");
  const std::string loss = coordinator_->artifacts().Add("loss");
  tactus::v1::Start start = Needing(model);
  start.mutable_spec()->mutable_model()->set_loss("sha256:" + loss);
  start.set_checkpoint("sha256:" + checkpoint);

  coordinator_->StartWith(5, "start", start);
  const std::string line = AwaitFailure();

  const std::string blobs = folder_.File("state/blobs/");
  EXPECT_THAT(line, HasSubstr("\"checkpoint\":\"" + blobs + checkpoint + "\""));
  EXPECT_THAT(line, HasSubstr("\"torchscript\":\"" + blobs + model + "\""));
  EXPECT_THAT(line, HasSubstr("\"loss\":\"" + blobs + loss + "\""));
  EXPECT_EQ(ReadFile(blobs + model), "model");
}

TEST_F(AgentTest, AFileThatIsNotThereIsReportedLikeAWorkerThatCannotBeStarted) {
  Open({});
  coordinator_->StartWith(5, "echo", Needing(std::string(64, 'a')));
  coordinator_->StartWith(6, "echo", Needing("../model.pt"));

  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 127);
  EXPECT_THAT(coordinator_->AwaitExit(5).log_tail(), HasSubstr("model.torchscript: sha256:aaaa"));
  EXPECT_EQ(coordinator_->AwaitExit(6).exit_code(), 127);
}

TEST_F(AgentTest, AWorkerWhoseFilesAreOnTheirWayRunsAndCanBeStopped) {
  Open({});
  const std::string model = coordinator_->artifacts().Add("model");
  coordinator_->artifacts().Shut();
  coordinator_->StartWith(5, "echo", Needing(model));
  coordinator_->StartWith(6, "echo", Needing(model));
  coordinator_->artifacts().AwaitDownloads(1);
  coordinator_->Drop(0);
  const FromAgent hello = coordinator_->AwaitHello(2);
  EXPECT_THAT(hello.hello().running_workers(), testing::UnorderedElementsAre(5, 6));

  coordinator_->StopWorker(5);
  const tactus::agent::v1::WorkerExited exit = coordinator_->AwaitExit(5);
  coordinator_->SendPlan(6, 3);
  coordinator_->artifacts().Open();

  EXPECT_EQ(exit.exit_code(), -1);
  EXPECT_EQ(exit.signal(), SIGTERM);
  // What was said to the other one while it waited is not lost.
  const FromAgent report = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_report(); });
  EXPECT_EQ(report.from_worker().worker_id(), 6u);
  EXPECT_EQ(report.from_worker().message().report().plan_version(), 3u);
  for (const FromAgent& message : coordinator_->received()) {
    EXPECT_FALSE(message.from_worker().worker_id() == 5);
  }
}

TEST_F(AgentTest, AFetchOutlivesACoordinatorThatIsAway) {
  Open({});
  const std::string model = coordinator_->artifacts().Add("model");
  coordinator_->artifacts().BreakNext({1, 1, 1, 1, 1, 1, 1});
  coordinator_->StartWith(5, "echo", Needing(model));

  const FromAgent ready = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_ready(); });

  EXPECT_EQ(ready.from_worker().worker_id(), 5u);
}

TEST_F(AgentTest, StoppingGivesUpWorkersThatWaitForFiles) {
  Open({});
  const std::string model = coordinator_->artifacts().Add("model");
  coordinator_->artifacts().Shut();
  coordinator_->StartWith(5, "echo", Needing(model));
  coordinator_->artifacts().AwaitDownloads(1);

  EXPECT_TRUE(Stop(Seconds(0.1)));

  EXPECT_EQ(coordinator_->AwaitExit(5).signal(), SIGTERM);
}

TEST_F(AgentTest, WhatAWorkerWritesGoesUpWholeAndBeforeItsExit) {
  Open({});
  coordinator_->StartWorker(5, "talk");
  for (std::uint64_t version = 1; version <= 3; ++version) coordinator_->SendPlan(5, version);
  EXPECT_EQ(coordinator_->AwaitOutput(5, "line 3\n"), "line 1\nline 2\nline 3\n");

  coordinator_->SendStop(5);
  coordinator_->AwaitExit(5);

  EXPECT_EQ(coordinator_->AwaitOutput(5, "the end"), "line 1\nline 2\nline 3\nthe end");
  const std::vector<FromAgent> received = coordinator_->received();
  EXPECT_TRUE(received.back().has_worker_exited());
  EXPECT_EQ(received[received.size() - 2].log_lines().job_id(), "talk-1");
}

TEST_F(AgentTest, ACrashIsReportedWithTheEndOfItsLog) {
  Open({});
  coordinator_->StartWorker(5, "crash");

  const tactus::agent::v1::WorkerExited exit = coordinator_->AwaitExit(5);

  EXPECT_EQ(exit.exit_code(), 3);
  EXPECT_EQ(exit.log_tail(), "boom: out of luck\n");
  EXPECT_EQ(ReadFile(folder_.File("state/jobs/crash-1/worker-5.log")), "boom: out of luck\n");
}

TEST_F(AgentTest, AWorkerThatTheKernelKilledForWantOfMemoryIsSaidToBeThat) {
  options_.memory_kill_files = {.cgroup = "/tactus", .cgroup_events = folder_.File("events")};
  const auto set = [this](int kills) {
    std::ofstream(options_.memory_kill_files.cgroup_events) << "oom 1\noom_kill " << kills << "\n";
  };
  set(3);
  Open({});
  const pid_t first = StartEcho(5);
  const pid_t second = StartEcho(6);

  ::kill(first, SIGKILL);
  EXPECT_EQ(coordinator_->AwaitExit(5).log_tail(), "");
  set(4);
  ::kill(second, SIGKILL);

  EXPECT_THAT(coordinator_->AwaitExit(6).log_tail(),
              testing::EndsWith("\nkilled by the kernel for want of memory "
                                "(oom_kill of cgroup /tactus rose from 3 "
                                "to 4)"));
}

TEST_F(AgentTest, AMalformedLineEndsTheWorkerAndSaysWhy) {
  Open({});
  coordinator_->StartWorker(5, "malformed");

  EXPECT_THAT(AwaitFailure(), HasSubstr("worker 5: not a message"));
  EXPECT_EQ(coordinator_->AwaitExit(5).signal(), SIGTERM);
}

TEST_F(AgentTest, StopWorkerEndsAStubbornWorkerAfterItsGrace) {
  Open({});
  StartEcho(5, "stubborn");
  tactus::agent::v1::ToAgent stop;
  stop.mutable_stop_worker()->set_worker_id(5);
  stop.mutable_stop_worker()->mutable_grace()->set_nanos(10'000'000);

  coordinator_->Send(stop);

  EXPECT_EQ(coordinator_->AwaitExit(5).signal(), SIGKILL);
}

TEST_F(AgentTest, AWorkerThatCannotBeStartedIsReportedAsEnded) {
  Open({});
  coordinator_->StartWorker(5, "echo", "cuda:9");
  coordinator_->StartWorker(6, "../../etc");

  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 127);
  EXPECT_THAT(coordinator_->AwaitExit(5).log_tail(), HasSubstr("device 'cuda:9'"));
  EXPECT_THAT(coordinator_->AwaitExit(6).log_tail(), HasSubstr("job id"));
}

TEST_F(AgentTest, AWorkerThatDidNotStartLeavesNoScratchFolder) {
  options_.worker_binary = folder_.File("no-such-worker");
  Open({});
  coordinator_->StartWorker(5, "echo");
  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 127);
  coordinator_->StartWith(6, "echo", Needing(std::string(64, 'a')));
  EXPECT_EQ(coordinator_->AwaitExit(6).exit_code(), 127);

  EXPECT_TRUE(std::filesystem::exists(folder_.File("state/jobs/echo-1/result")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/jobs/echo-1/scratch-5")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/jobs/echo-1/scratch-6")));
}

TEST_F(AgentTest, AWorkerThatIsAskedForAgainGoesOn) {
  Open({});
  StartEcho(5);

  coordinator_->StartWorker(5, "echo");
  coordinator_->SendPlan(5, 8);

  const FromAgent report = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_report(); });
  EXPECT_EQ(report.from_worker().message().report().plan_version(), 8u);
  for (const FromAgent& message : coordinator_->received()) {
    EXPECT_FALSE(message.has_worker_exited()) << message.ShortDebugString();
  }
}

TEST_F(AgentTest, AWorkerThatIsAskedForAgainWhileItsFilesAreOnTheirWayStartsOnce) {
  Open({});
  const std::string model = coordinator_->artifacts().Add("model");
  coordinator_->artifacts().Shut();
  coordinator_->StartWith(5, "echo", Needing(model));
  coordinator_->artifacts().AwaitDownloads(1);

  coordinator_->StartWith(5, "echo", Needing(model));
  coordinator_->artifacts().Open();

  const FromAgent first = coordinator_->AwaitMessage([](const FromAgent&) { return true; });
  EXPECT_TRUE(first.from_worker().message().has_ready()) << first.ShortDebugString();
}

// Makes a folder of a job, that was last here so long ago.
void LeaveFolder(const std::string& path, std::chrono::hours ago) {
  std::filesystem::create_directories(path + "/result");
  std::ofstream(path + "/result/model.pt") << "weights";
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - ago);
}

TEST_F(AgentTest, WhatOldJobsLeftIsRemovedAtTheStart) {
  using std::chrono::hours;
  LeaveFolder(folder_.File("state/jobs/old-1"), hours(25));
  LeaveFolder(folder_.File("state/jobs/young-1"), hours(23));
  std::filesystem::create_directories(folder_.File("state/blobs"));
  const std::string blob = folder_.File("state/blobs/" + std::string(64, 'a'));
  std::ofstream(blob) << "model";
  std::filesystem::last_write_time(blob, std::filesystem::file_time_type::clock::now() - hours(25));

  Open({});

  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/jobs/old-1")));
  EXPECT_TRUE(std::filesystem::exists(folder_.File("state/jobs/young-1/result/model.pt")));
  EXPECT_FALSE(std::filesystem::exists(blob));
}

TEST_F(AgentTest, AResultThatWasNotTakenIsMarkedAndOneThatWasIsNot) {
  const std::string mark = folder_.File("state/jobs/result-1/result-not-sent");
  Open({.refused_uploads = 1, .upload_refusal = grpc::StatusCode::INVALID_ARGUMENT});
  coordinator_->StartWorker(5, "result");
  EXPECT_THAT(AwaitFailure(), HasSubstr("was not taken"));
  EXPECT_TRUE(std::filesystem::exists(mark));

  coordinator_->StartWorker(6, "result");
  ASSERT_TRUE(coordinator_->AwaitUpload("result-1/model.pt"));
  ASSERT_TRUE(Stop(Seconds(60)));  // lets uploads finish
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(AgentTest, AfterAReconnectOnlyWhatIsNotAcknowledgedComesAgainInOrder) {
  Open({.acknowledges = false});
  StartEcho(5);
  for (std::uint64_t version = 1; version <= 4; ++version) coordinator_->SendPlan(5, version);
  ASSERT_TRUE(coordinator_->Await([](const auto& received) { return received.size() == 5; }));

  coordinator_->Drop(2);
  const FromAgent hello = coordinator_->AwaitHello(2);
  coordinator_->SendPlan(5, 9);

  ASSERT_TRUE(coordinator_->Await([](const auto& received) { return received.size() == 9; }));
  EXPECT_EQ(Sequences(coordinator_->received()),
            (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 3, 4, 5, 6}));
  EXPECT_EQ(hello.hello().incarnation(), 77u);
  EXPECT_EQ(hello.acknowledged(), 5u);  // the start and four plans
  ASSERT_EQ(hello.hello().running_workers_size(), 1);
  EXPECT_EQ(hello.hello().running_workers(0), 5u);
}

TEST_F(AgentTest, AMessageThatComesTwiceIsHandledOnce) {
  Open({});
  StartEcho(5);
  tactus::agent::v1::ToAgent plan;
  plan.mutable_to_worker()->set_worker_id(5);
  plan.mutable_to_worker()->mutable_message()->mutable_plan()->set_version(3);

  coordinator_->Send(plan, 2);
  coordinator_->Send(plan, 2);
  coordinator_->Send(plan, 1);
  plan.mutable_to_worker()->mutable_message()->mutable_plan()->set_version(4);
  coordinator_->Send(plan, 3);

  ASSERT_TRUE(coordinator_->Await([](const auto& received) { return received.size() == 3; }));
  EXPECT_EQ(coordinator_->received()[2].from_worker().message().report().plan_version(), 4u);
}

TEST_F(AgentTest, WorkersGoOnWithoutACoordinatorAndEverythingArrivesWhenItIsBack) {
  Open({.acknowledges = true});
  coordinator_->AwaitHello(1);
  const int port = coordinator_->port();
  coordinator_->StartWorker(5, "burst");
  ASSERT_TRUE(coordinator_->Await([](const auto& received) { return !received.empty(); }));

  coordinator_.reset();
  coordinator_ = std::make_unique<FakeCoordinator>(FakeCoordinator::Manners{}, port);

  // The second Ready comes last. This coordinator remembers nothing, so it is sent all that the
  // former one did not acknowledge.
  const FromAgent last = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.sequence() == 1003; });
  EXPECT_TRUE(last.from_worker().message().has_ready());
  std::vector<std::uint64_t> sequences = Sequences(coordinator_->received());
  EXPECT_TRUE(std::ranges::is_sorted(sequences));
  EXPECT_EQ(std::set(sequences.begin(), sequences.end()).size(), sequences.size());
  EXPECT_EQ(sequences.back() - sequences.front() + 1, sequences.size());
}

TEST_F(AgentTest, HeartbeatsComeAsOftenAsWelcomeAsksFor) {
  Open({.heartbeat_seconds = 0.05});
  StartEcho(5);

  // Each plan's answer is waited for, so the beats are those of a live stream and not of a backlog.
  for (std::uint64_t version = 1; coordinator_->heartbeats() < 3; ++version) {
    coordinator_->SendPlan(5, version);
    ASSERT_TRUE(coordinator_->Await(
        [version](const auto& received) { return received.size() == version + 1; }));
  }
  EXPECT_GE(coordinator_->heartbeats(), 3u);
}

TEST_F(AgentTest, AResultIsUploadedWholeAfterRefusals) {
  Open({.refused_uploads = 2});
  coordinator_->StartWorker(5, "result");

  ASSERT_TRUE(coordinator_->AwaitUpload("result-1/model.pt"));

  EXPECT_EQ(coordinator_->uploaded()["result-1/model.pt"], std::string(5 << 19, 'm'));
  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 0);
}

TEST_F(AgentTest, AnUploadGoesOnBehindWhatTheCoordinatorHas) {
  Open({});
  runtime::Sha256 hash;
  hash.Update(std::string(5 << 19, 'm'));
  const std::string sha256 = hash.Finish();
  coordinator_->artifacts().SetReceived(sha256, 2'000'000);
  coordinator_->StartWorker(5, "result");

  ASSERT_TRUE(coordinator_->AwaitUpload("result-1/model.pt"));

  EXPECT_EQ(coordinator_->upload_header().sha256(), sha256);
  EXPECT_EQ(coordinator_->upload_header().offset(), 2'000'000u);
  EXPECT_EQ(coordinator_->uploaded()["result-1/model.pt"],
            std::string(2'000'000, '?') + std::string((5 << 19) - 2'000'000, 'm'));
}

TEST_F(AgentTest, AResultThatIsRefusedForGoodFailsInTheWorkersName) {
  Open({.refused_uploads = 100, .upload_refusal = grpc::StatusCode::INVALID_ARGUMENT});
  coordinator_->StartWorker(5, "result");

  EXPECT_THAT(AwaitFailure(), HasSubstr("file 'model.pt' was not taken: not now"));
}

TEST_F(AgentTest, FilesOutsideOfTheResultOrAbsentAreNotUploaded) {
  Open({});
  coordinator_->StartWorker(5, "escape");
  EXPECT_THAT(AwaitFailure(), HasSubstr("file '../secret'"));

  coordinator_->StartWorker(6, "missing");
  const FromAgent failed = coordinator_->AwaitMessage([](const FromAgent& message) {
    return message.from_worker().worker_id() == 6 && message.from_worker().message().has_failed();
  });
  EXPECT_THAT(failed.from_worker().message().failed().message(), HasSubstr("nothing.pt"));
  EXPECT_TRUE(coordinator_->uploaded().empty());
}

TEST_F(AgentTest, StoppingEndsWorkersTellsOfItAndLeavesNothing) {
  Open({});
  const pid_t first = StartEcho(5);
  const pid_t second = StartEcho(6, "stubborn");

  EXPECT_TRUE(Stop(Seconds(0.1)));

  EXPECT_TRUE(AwaitProcessEnd(first));
  EXPECT_TRUE(AwaitProcessEnd(second));
  EXPECT_EQ(coordinator_->AwaitExit(5).signal(), SIGTERM);
  EXPECT_EQ(coordinator_->AwaitExit(6).signal(), SIGKILL);
}

TEST_F(AgentTest, SocketsOfAKilledAgentAreClearedAndThoseOfAStoppedOneToo) {
  std::filesystem::create_directories(folder_.File("state/run"));
  std::ofstream(folder_.File("state/run/9.sock")) << "left behind";
  Open({});

  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/run/9.sock")));
  StartEcho(5);
  ASSERT_TRUE(Stop(Seconds(0)));
  control_.RunAndWait([this] { agent_.reset(); });
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/run")));
}

TEST_F(AgentTest, StoppingWithoutACoordinatorEndsToo) {
  Open({});
  coordinator_->AwaitHello(1);
  coordinator_.reset();

  EXPECT_TRUE(Stop(Seconds(0.1)));
}

TEST_F(AgentTest, ASecondAgentInTheSameStateFolderIsRefused) {
  Open({});

  EXPECT_EQ(Agent::Open(control_, metrics_, options_, 78).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tactus::agent
