// What somebody with a good certificate may not do, what a change of the rules does to those who
// are in, and what is written down of it all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coordinator/access/audit_chain.h"
#include "identity/credentials.h"
#include "runtime/process.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/tls_fixture.h"

namespace tactus::service {
namespace {

using ::testing::HasSubstr;

class IdentitiesTest : public TlsFixture {
 protected:
  // From now on the fixture's stubs call as that.
  void Become(const std::string& who) {
    channel_ = ChannelOf(who);
    jobs_ = v1::Jobs::NewStub(channel_);
    nodes_ = v1::Nodes::NewStub(channel_);
    admin_ = v1::Admin::NewStub(channel_);
    artifacts_ = v1::Artifacts::NewStub(channel_);
  }

  absl::Status Pause(const std::string& name) {
    v1::PauseJobRequest request;
    request.set_name(name);
    return Call(jobs_, &v1::Jobs::Stub::PauseJob, request).status();
  }

  std::string AuditText() const {
    std::string text;
    const std::string folder = StateFolder() + "/audit/";
    for (const std::string& file : access::AuditFiles(folder)) {
      std::ifstream in(folder + file);
      std::stringstream content;
      content << in.rdbuf();
      text += content.str();
    }
    return text;
  }
};

unsigned ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

TEST_F(IdentitiesTest, AJobHasItsOwnerAndOthersChangeNothingOfIt) {
  Become("user/alice");
  const auto job = Create(SmallSpec(), "request-1");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner(), "user/alice");

  Become("user/bob");
  EXPECT_EQ(Get(job->name())->owner(), "user/alice");
  const absl::Status refused = Pause(job->name());
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_EQ(runtime::ReasonOf(refused).reason, "NOT_YOURS");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("is that of user/alice, and user/bob asks"));
  EXPECT_TRUE(absl::IsPermissionDenied(Cancel(job->name()).status()));
  EXPECT_TRUE(absl::IsNotFound(Pause("nothing-1")));
  // Nor is it taken for one of theirs by its request.
  EXPECT_EQ(runtime::ReasonOf(Create(SmallSpec(), "request-1").status()).reason, "REQUEST_ID_USED");
  Become("user/alice");
  EXPECT_TRUE(Pause(job->name()).ok());
  EXPECT_EQ(Create(SmallSpec(), "request-1")->name(), job->name());
  Become("user/root");
  EXPECT_TRUE(Cancel(job->name()).ok());
}

// S3, S7: a certificate opens one name, however many a node would like to have.
TEST_F(IdentitiesTest, AnAgentSpeaksForItsOwnNodeAlone) {
  for (const std::string name : {"a", "invented-1", "", "nodes/b"}) {
    FakeAgent agent(ChannelOf("node/b"), name);
    agent.Connect();
    EXPECT_FALSE(agent.Finish().ok()) << name;
  }
  FakeAgent user(ChannelOf("user/root"), "root");
  user.Connect();
  EXPECT_EQ(user.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Become("user/vera");
  EXPECT_EQ(Call(nodes_, &v1::Nodes::Stub::ListNodes, v1::ListNodesRequest())->nodes_size(), 0);

  FakeAgent agent(ChannelOf("node/b"), "b");
  agent.Connect();
  EXPECT_EQ(Call(nodes_, &v1::Nodes::Stub::ListNodes, v1::ListNodesRequest())->nodes_size(), 1);
}

class IdentitiesOfWorkersTest : public IdentitiesTest {
 protected:
  // A job of alice's with rank 0 on node a: one worker on each node.
  void SetUp() override {
    IdentitiesTest::SetUp();
    Become("user/alice");
    a_ = std::make_unique<FakeAgent>(ChannelOf("node/a"), "a");
    b_ = std::make_unique<FakeAgent>(ChannelOf("node/b"), "b");
    a_->faults = b_->faults = {{"cpu:1", "is not offered"}};
    a_->Connect();
    b_->Connect();
    job_ = Create(SmallSpec())->name();
    on_a_ = a_->Read().start_worker().worker_id();
    on_b_ = b_->Read().start_worker().worker_id();
    ASSERT_NE(on_a_, 0u);
    ASSERT_NE(on_b_, 0u);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    IdentitiesTest::TearDown();
  }

  std::string job_;
  std::unique_ptr<FakeAgent> a_, b_;
  std::uint64_t on_a_ = 0, on_b_ = 0;  // the workers; on_a_ is rank 0
};

// S2: what a user downloads and loads comes from the node that made it.
TEST_F(IdentitiesOfWorkersTest, AResultIsBroughtByTheNodeOfRankZeroAlone) {
  const auto code = [&](FakeAgent& agent, std::uint64_t worker) {
    return agent.Upload(job_, "model.pt", "x", 1, worker).error_code();
  };

  EXPECT_EQ(code(*b_, on_a_), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code(*b_, on_b_), grpc::StatusCode::PERMISSION_DENIED);  // it is rank 1
  EXPECT_EQ(code(*b_, 0), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code(*b_, 4711), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code(*a_, on_b_), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code(*a_, on_a_), grpc::StatusCode::OK);
  EXPECT_EQ(code(*a_, 0), grpc::StatusCode::OK);
  FakeAgent user(ChannelOf("user/root"), "root");
  EXPECT_EQ(code(user, on_a_), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(IdentitiesOfWorkersTest, NobodyIsRankZeroOfAJobThatHasNoGroup) {
  EXPECT_TRUE(Pause(job_).ok());
  a_->Exit(on_a_);
  b_->Exit(on_b_);
  ASSERT_TRUE(Eventually([&] { return Get(job_)->state() == v1::JOB_STATE_PAUSED; }));

  EXPECT_EQ(b_->Upload(job_, "model.pt", "x", 1, 0).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(b_->Upload(job_, "model.pt", "x", 1, on_b_).error_code(), grpc::StatusCode::OK);
}

// A node that says that another node's worker has died ends nothing.
TEST_F(IdentitiesOfWorkersTest, WhatANodeSaysOfAnotherNodesWorkerIsDropped) {
  b_->Exit(on_a_);
  b_->SayFaults({});  // behind it, so that it has been dealt with when this is seen
  Become("user/vera");
  ASSERT_TRUE(Eventually([&] {
    v1::GetNodeRequest request;
    request.set_name("b");
    const auto node = Call(nodes_, &v1::Nodes::Stub::GetNode, request);
    return node.ok() && node->devices(1).fault().empty();
  }));

  EXPECT_EQ(Get(job_)->state(), v1::JOB_STATE_STARTING);
}

TEST_F(IdentitiesOfWorkersTest, AStreamEndsWhenItsNodeIsRevokedAndItsWorkersAreGivenUp) {
  Revoke("node/b");

  ASSERT_TRUE(Eventually([&] {
    b_->SayFaults({});
    Become("user/vera");
    v1::GetNodeRequest request;
    request.set_name("b");
    const auto node = Call(nodes_, &v1::Nodes::Stub::GetNode, request);
    return node.ok() && !node->connected();
  }));
  EXPECT_EQ(b_->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  b_->Connect();
  EXPECT_EQ(b_->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // Its job goes on without it, or elsewhere.
  ASSERT_TRUE(Eventually([&] { return Get(job_)->state() != v1::JOB_STATE_STARTING; }));
}

TEST_F(IdentitiesTest, AStreamEndsWhenThePolicyHasItsNodeNoMore) {
  FakeAgent agent(ChannelOf("node/a"), "a");
  agent.Connect();
  WritePolicy(R"({"viewers": ["vera"], "nodes": ["b"]})");

  Become("user/vera");
  ASSERT_TRUE(Eventually([&] {
    agent.SayFaults({});
    v1::GetNodeRequest request;
    request.set_name("a");
    const auto node = Call(nodes_, &v1::Nodes::Stub::GetNode, request);
    return node.ok() && !node->connected();
  }));
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(IdentitiesTest, APolicyThatIsWrongChangesNothingUntilItIsRight) {
  Become("user/bob");
  WritePolicy(R"({"admin": ["bob"]})");
  std::filesystem::remove(folder_ + "/policy.json");
  WritePolicy(R"({"admins": ["bob"]} and more)");
  EXPECT_TRUE(Create(SmallSpec()).ok());

  WritePolicy(R"({"viewers": ["bob"]})");

  EXPECT_TRUE(Eventually([&] { return absl::IsPermissionDenied(Create(SmallSpec()).status()); }));
  EXPECT_TRUE(Call(jobs_, &v1::Jobs::Stub::ListJobs, v1::ListJobsRequest()).ok());
}

TEST_F(IdentitiesTest, AWatcherThatIsRevokedHearsNoMore) {
  Become("user/alice");
  const std::string job = Create(SmallSpec())->name();
  const auto stub = v1::Jobs::NewStub(ChannelOf("user/vera"));
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_name(job);
  const auto stream = stub->WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));

  Revoke("user/vera");
  EXPECT_TRUE(Eventually([&] {
    v1::GetJobRequest get;
    get.set_name(job);
    return absl::IsUnauthenticated(Call(stub, &v1::Jobs::Stub::GetJob, get).status());
  }));
  EXPECT_TRUE(Cancel(job).ok());

  while (stream->Read(&event)) {
    EXPECT_NE(event.job().state(), v1::JOB_STATE_CANCELLED);
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// S8: where it is asked who somebody is, where they are counts for nothing.
TEST_F(IdentitiesTest, BeingOnTheCoordinatorsMachineMakesNobodyAnAdmin) {
  Become("user/alice");
  v1::SetLogLevelRequest request;
  request.set_level("warn");
  EXPECT_TRUE(
      absl::IsPermissionDenied(Call(admin_, &v1::Admin::Stub::SetLogLevel, request).status()));
  Become("user/root");
  EXPECT_TRUE(Call(admin_, &v1::Admin::Stub::SetLogLevel, request).ok());
}

// S9.
TEST_F(IdentitiesTest, WhatTheCoordinatorKeepsIsItsOwnersAlone) {
  Become("user/alice");
  ASSERT_TRUE(Create(SmallSpec()).ok());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(StateFolder())) {
    if (!entry.path().filename().string().starts_with("coordinator.db")) continue;
    ++files;
    EXPECT_EQ(ModeOf(entry.path()), 0600u) << entry.path();
  }
  EXPECT_GE(files, 2u);  // and its log
  EXPECT_EQ(ModeOf(StateFolder() + "/audit"), 0700u);
}

TEST_F(IdentitiesTest, EveryChangeAndEveryRefusalIsWrittenDown) {
  Become("user/alice");
  const std::string job = Create(SmallSpec())->name();
  EXPECT_TRUE(Get(job).ok());
  Become("user/bob");
  EXPECT_FALSE(Pause(job).ok());
  Become("user/vera");
  EXPECT_FALSE(Pause(job).ok());
  Become("revoked");
  EXPECT_FALSE(Get(job).ok());
  FakeAgent agent(ChannelOf("node/b"), "a");
  agent.Connect();
  agent.Finish();
  Stop();

  const auto report = access::VerifyAudit(StateFolder() + "/audit");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, 5u);
  const std::string text = AuditText();
  for (const std::string& part : std::vector<std::string>{
           R"("who":"user/alice","peer":"ipv4:127.0.0.1:)",
           R"("method":"Jobs/CreateJob","about":")" + job + R"(","code":"OK")",
           R"("method":"Jobs/PauseJob","about":")" + job + R"(","code":"PERMISSION_DENIED")",
           std::string(R"("who":"user/vera","peer":"")"),
           std::string(R"("who":"user/root","peer":"")"),
           std::string(R"("method":"Jobs/GetJob","about":"","code":"UNAUTHENTICATED")"),
           std::string(R"("method":"AgentSession/Session","about":"nodes/a","code":)"),
       }) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

class IdentitiesAndFewLinesTest : public IdentitiesTest {
 protected:
  IdentitiesAndFewLinesTest() { options_.audit_lines = 8; }
};

// More streams than the audit log has places: none of them is a change yet.
TEST_F(IdentitiesAndFewLinesTest, StreamsThatSayNothingKeepNobodyFromWork) {
  const auto channel = ChannelOf("node/a");
  const auto stub = agent::v1::AgentSession::NewStub(channel);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<agent::v1::FromAgent, agent::v1::ToAgent>>>
      streams;
  for (int i = 0; i < 50; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub->Session(contexts.back().get()));
  }
  Become("user/alice");
  EXPECT_TRUE(Create(SmallSpec()).ok());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    contexts[i]->TryCancel();
    streams[i]->Finish();
  }
  Stop();

  EXPECT_EQ(access::VerifyAudit(StateFolder() + "/audit")->lines, 1u);
}

// A node that has the port of the coordinator cannot pose as it.
TEST_F(IdentitiesTest, TheCoordinatorIsKnownByItsIdNotByAnyCertificateOfItsAuthority) {
  const auto folder = [&](const std::string& name, const identity::TlsTexts& texts) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directory(path);
    EXPECT_TRUE(runtime::WriteFileWhole(path + "/ca.pem", texts.authority).ok());
    EXPECT_TRUE(runtime::WriteFileWhole(path + "/cert.pem", texts.certificate).ok());
    EXPECT_TRUE(runtime::WriteFileWhole(path + "/key.pem", texts.key).ok());
    return path;
  };
  const auto ask = [](const std::string& address, const std::string& tls_dir) {
    const auto credentials = identity::MakeChannelCredentials(tls_dir);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    const auto stub = v1::Jobs::NewStub(grpc::CreateChannel(address, *credentials));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::ListJobsResponse response;
    return stub->ListJobs(&context, v1::ListJobsRequest(), &response);
  };
  // One who has the coordinator's port and a certificate of the authority's.
  const auto pose = [&](const identity::TlsTexts& texts) {
    grpc::SslServerCredentialsOptions options;
    options.pem_root_certs = texts.authority;
    options.pem_key_cert_pairs.push_back({texts.key, texts.certificate});
    grpc::ServerBuilder builder;
    v1::Jobs::Service service;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    builder.RegisterService(&service);
    const auto server = builder.BuildAndStart();
    identity::TlsTexts alice = certificates_["user/alice"];
    alice.authority += texts.authority;  // she trusts both
    return ask("127.0.0.1:" + std::to_string(port), folder("posed", alice)).error_code();
  };

  EXPECT_TRUE(ask(server_->address(), folder("alice", certificates_["user/alice"])).ok());
  EXPECT_EQ(pose(certificates_["node/a"]), grpc::StatusCode::UNAVAILABLE);
  // Of another trust domain, whose authority she trusts as well.
  const auto other = identity::MakeAuthority("elsewhere", 1'700'000'000, 36500);
  const auto elsewhere = identity::IssueCertificate(
      *other,
      {.kind = identity::Kind::kCoordinator, .now = 1'700'000'000, .seconds = 3'000'000'000});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(pose(*elsewhere), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(pose(certificates_["coordinator"]), grpc::StatusCode::UNIMPLEMENTED);  // it got in
}

}  // namespace
}  // namespace tactus::service
