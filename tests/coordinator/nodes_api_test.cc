// What users see and say of nodes, and what administrators do, over real gRPC.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "coordinator/service/door.h"
#include "coordinator/store/store.h"
#include "runtime/sha256.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodesApiTest : public ServerFixture {
 protected:
  absl::StatusOr<v1::Node> Get(const std::string& name) {
    v1::GetNodeRequest request;
    request.set_name(name);
    return Call(nodes_, &v1::Nodes::Stub::GetNode, request);
  }
  absl::StatusOr<v1::Node> Cordon(const std::string& name) {
    v1::CordonNodeRequest request;
    request.set_name(name);
    return Call(nodes_, &v1::Nodes::Stub::CordonNode, request);
  }
  absl::StatusOr<v1::Node> Drain(const std::string& name) {
    v1::DrainNodeRequest request;
    request.set_name(name);
    return Call(nodes_, &v1::Nodes::Stub::DrainNode, request);
  }
  absl::StatusOr<v1::Node> Uncordon(const std::string& name) {
    v1::UncordonNodeRequest request;
    request.set_name(name);
    return Call(nodes_, &v1::Nodes::Stub::UncordonNode, request);
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteNodeRequest request;
    request.set_name(name);
    return Call(nodes_, &v1::Nodes::Stub::DeleteNode, request).status();
  }
  std::vector<std::string> Names(int page_size) {
    std::vector<std::string> names;
    v1::ListNodesRequest request;
    request.set_page_size(page_size);
    do {
      const absl::StatusOr<v1::ListNodesResponse> page =
          Call(nodes_, &v1::Nodes::Stub::ListNodes, request);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return names;
      for (const v1::Node& node : page->nodes()) names.push_back(node.name());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return names;
  }
};

TEST_F(NodesApiTest, ANodeIsDescribedWithItsDevicesAndWhoHoldsThem) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(Create(SmallSpec()).ok());
  agent.Read();  // StartWorker: the devices are held

  const absl::StatusOr<v1::Node> node = Get("nodes/a");

  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->name(), "nodes/a");
  EXPECT_TRUE(node->connected());
  ASSERT_EQ(node->devices_size(), 2);
  EXPECT_EQ(node->devices(0).job(), "projects/default/jobs/small-1");
  EXPECT_FALSE(node->cordoned());
}

TEST_F(NodesApiTest, ANodeThatIsNotThereIsNotFound) {
  for (const absl::Status& status : {Get("b").status(), Cordon("b").status(), Drain("b").status(),
                                     Uncordon("b").status(), Delete("b")}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(runtime::ReasonOf(status).reason, "NODE_NOT_FOUND");
  }
}

TEST_F(NodesApiTest, WhatIsSaidOfANodeOutlivesTheCoordinator) {
  {
    FakeAgent agent(server_->address(), "a");
    agent.Connect();
    EXPECT_TRUE(Cordon("a")->cordoned());
    const absl::StatusOr<v1::Node> drained = Drain("nodes/a");
    EXPECT_TRUE(drained->cordoned());
    EXPECT_TRUE(drained->draining());
  }
  Stop();
  Start();

  const absl::StatusOr<v1::Node> node = Get("a");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_FALSE(node->connected());
  EXPECT_TRUE(node->cordoned());
  EXPECT_TRUE(node->draining());
  EXPECT_THAT(Names(10), ElementsAre("nodes/a"));
  const absl::StatusOr<v1::Node> freed = Uncordon("a");
  ASSERT_TRUE(freed.ok()) << freed.status();
  EXPECT_FALSE(freed->cordoned());
  EXPECT_FALSE(freed->draining());
  EXPECT_THAT(Names(10), IsEmpty());
}

TEST_F(NodesApiTest, ANodeThatIsGoneIsForgottenWithItsCordon) {
  {
    FakeAgent agent(server_->address(), "a");
    agent.Connect();
    ASSERT_TRUE(Cordon("a").ok());
    const absl::Status connected = Delete("nodes/a");
    EXPECT_TRUE(absl::IsFailedPrecondition(connected)) << connected;
    EXPECT_EQ(runtime::ReasonOf(connected).reason, "NODE_CONNECTED");
    EXPECT_EQ(connected.message(), "nodes/a: its agent is connected; end it first");
  }
  ASSERT_TRUE(Eventually([&] { return !Get("a")->connected(); }));
  const absl::Status expected = Delete("a");
  EXPECT_TRUE(absl::IsFailedPrecondition(expected)) << expected;
  EXPECT_EQ(runtime::ReasonOf(expected).reason, "NODE_EXPECTED");

  EXPECT_TRUE(Eventually([&] { return Delete("a").ok(); }));

  EXPECT_THAT(Names(10), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Delete("a")));
  EXPECT_TRUE(absl::IsNotFound(Uncordon("a").status()));
  FakeAgent again(server_->address(), "a");
  again.Connect();
  EXPECT_FALSE(Get("a")->cordoned());
}

TEST_F(NodesApiTest, ThatANodeIsForgottenOutlivesTheCoordinator) {
  {
    FakeAgent agent(server_->address(), "a");
    agent.Connect();
    ASSERT_TRUE(Drain("a").ok());
  }
  Stop();
  Start();
  ASSERT_THAT(Names(10), ElementsAre("nodes/a"));

  const absl::Status status = Delete("a");

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(Names(10), IsEmpty());
  Stop();
  Start();
  EXPECT_THAT(Names(10), IsEmpty());
}

TEST_F(NodesApiTest, ANodeThatAJobHasWorkersOnIsKept) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(Create(SmallSpec()).ok());
  agent.Read();  // StartWorker
  agent.Break();
  ASSERT_TRUE(Eventually([&] { return !Get("a")->connected(); }));

  const absl::Status status = Delete("a");

  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(runtime::ReasonOf(status).reason, "NODE_HAS_WORKERS");
  EXPECT_THAT(std::string(status.message()), HasSubstr("nodes/a: job small-1 has workers there"));
}

TEST_F(NodesApiTest, ACordonedNodeGetsNoWorkersUntilItIsTakenBack) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  ASSERT_TRUE(Cordon("a").ok());
  ASSERT_TRUE(Create(SmallSpec()).ok());
  EXPECT_EQ(Get("a")->devices(0).job(), "");

  ASSERT_TRUE(Uncordon("a").ok());

  EXPECT_TRUE(agent.Read().has_start_worker());
  EXPECT_EQ(Get("a")->devices(0).job(), "projects/default/jobs/small-1");
}

TEST_F(NodesApiTest, ADeviceAtFaultGetsNoWorkersUntilItIsWell) {
  FakeAgent agent(server_->address(), "a");
  agent.Connect();
  agent.SayFaults({{"cpu:1", "the driver lost it"}});
  ASSERT_TRUE(Eventually([&] { return !Get("a")->devices(1).fault().empty(); }));

  const absl::StatusOr<v1::Job> job = Create(SmallSpec());

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state_reason(), "needs 2 devices; 1 free, 1 at fault");
  EXPECT_EQ(Get("a")->devices(0).fault(), "");
  EXPECT_EQ(Get("a")->devices(1).fault(), "the driver lost it");
  EXPECT_EQ(Get("a")->devices(0).job(), "");
  agent.SayFaults({});

  EXPECT_TRUE(agent.Read().has_start_worker());
  EXPECT_EQ(Get("a")->devices(1).fault(), "");
  EXPECT_EQ(Get("a")->devices(1).job(), "projects/default/jobs/small-1");
}

TEST_F(NodesApiTest, ANodeSaysItsFaultsWheneverItConnects) {
  FakeAgent agent(server_->address(), "a");
  agent.faults = {{"cpu:0", "the driver reported XID 79"}};
  agent.Connect();
  ASSERT_TRUE(Create(SmallSpec()).ok());
  EXPECT_EQ(Get("a")->devices(0).fault(), "the driver reported XID 79");
  EXPECT_EQ(Get("a")->devices(0).job(), "");

  agent.faults.clear();
  agent.Connect();

  EXPECT_TRUE(agent.Read().has_start_worker());
  EXPECT_EQ(Get("a")->devices(0).fault(), "");
}

TEST_F(NodesApiTest, NodesAreListedInPages) {
  FakeAgent c(server_->address(), "c");
  FakeAgent a(server_->address(), "a");
  FakeAgent b(server_->address(), "b");
  for (FakeAgent* agent : {&c, &a, &b}) agent->Connect();

  EXPECT_THAT(Names(1), ElementsAre("nodes/a", "nodes/b", "nodes/c"));
  EXPECT_THAT(Names(2), ElementsAre("nodes/a", "nodes/b", "nodes/c"));
  EXPECT_THAT(Names(3), ElementsAre("nodes/a", "nodes/b", "nodes/c"));
}

// ---- Administrators

class AdminApiTest : public ServerFixture {
 protected:
  // Returns its SHA-256.
  std::string Upload(const std::string& content) {
    runtime::Sha256 hash;
    hash.Update(content);
    const std::string sha256 = hash.Finish();
    grpc::ClientContext context;
    v1::Blob blob;
    const auto writer = artifacts_->UploadBlob(&context, &blob);
    v1::UploadBlobRequest request;
    request.set_sha256(sha256);
    request.set_size_bytes(content.size());
    request.set_data(content);
    writer->Write(request);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return sha256;
  }

  absl::Status Backup(const std::string& path) {
    grpc::ClientContext context;
    const auto reader = admin_->Backup(&context, v1::BackupRequest());
    std::ofstream out(path, std::ios::binary);
    v1::BackupChunk chunk;
    while (reader->Read(&chunk)) out << chunk.data();
    return runtime::FromGrpc(reader->Finish());
  }
};

TEST_F(AdminApiTest, AJobWhoseFileIsNotThereIsRefused) {
  v1::JobSpec spec = SmallSpec();
  spec.mutable_model()->set_torchscript("sha256:" + std::string(64, 'a'));

  const absl::Status status = Create(spec).status();

  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(runtime::ReasonOf(status).reason, "BLOB_NOT_FOUND");
  spec.mutable_model()->set_torchscript("sha256:" + Upload("model"));
  EXPECT_TRUE(Create(spec).ok());
}

TEST_F(AdminApiTest, ABackupIsADatabaseThatACoordinatorCanBeStartedFrom) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::string copy = folder_ + "/copy.db";

  const absl::Status status = Backup(copy);

  ASSERT_TRUE(status.ok()) << status;

  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/state")) {
    EXPECT_EQ(entry.path().string().find("copy"), std::string::npos) << entry.path();
  }
  const auto store = store::Store::Open(copy);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->FindJob("small-1").ok());
  EXPECT_THAT(*(*store)->CheckIntegrity(), IsEmpty());
}

TEST_F(AdminApiTest, ABackupUnderALoadOfChangesIsSoundAndHasWhatWasThereBefore) {
  std::atomic<bool> stop = false;
  std::atomic<int> made = 0;
  auto load = std::async(std::launch::async, [&] {
    while (!stop) made += Create(SmallSpec()).ok() ? 1 : 0;
  });
  const absl::Cleanup end_of_load = [&] {
    stop = true;
    load.wait();
  };
  for (int i = 0; i < 3; ++i) {
    const int before = made;
    ASSERT_TRUE(Eventually([&] { return made >= before + 5; }));
    const std::string path = folder_ + "/copy-" + std::to_string(i);
    const int there = made;

    const absl::Status status = Backup(path);

    ASSERT_TRUE(status.ok()) << status;
    const auto copy = store::Store::Open(path);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_THAT(*(*copy)->CheckIntegrity(), IsEmpty());
    EXPECT_GE(*(*copy)->LastJobId(), static_cast<std::uint64_t>(there));
  }
}

TEST_F(AdminApiTest, TheIntegrityCheckCountsWhatItLookedAt) {
  v1::JobSpec spec = SmallSpec();
  ASSERT_TRUE(Create(spec).ok());
  ASSERT_TRUE(Create(spec).ok());

  const auto sound = Call(admin_, &v1::Admin::Stub::CheckIntegrity, v1::CheckIntegrityRequest());
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->jobs(), 2u);
  EXPECT_EQ(sound->problems_size(), 0) << sound->DebugString();

  spec.mutable_model()->set_torchscript("sha256:" + Upload("model"));
  ASSERT_TRUE(Create(spec).ok());
  std::filesystem::remove_all(folder_ + "/state/blobs");
  const auto missing = Call(admin_, &v1::Admin::Stub::CheckIntegrity, v1::CheckIntegrityRequest());
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(missing->blobs(), 1u);
  EXPECT_EQ(missing->problems_size(), 1) << missing->DebugString();
}

TEST(AdminServiceTest, OnlyCallersOnThisMachineAreLocal) {
  for (const std::string peer : {"ipv4:127.0.0.1:50", "ipv4:127.1.2.3:50", "ipv6:[::1]:50",
                                 "ipv6:%5B::1%5D:50", "unix:/run/x", "unix:"}) {
    EXPECT_TRUE(IsLocal(peer)) << peer;
  }
  for (const std::string peer : {"ipv4:10.0.0.1:50", "ipv4:128.0.0.1:50", "ipv6:[fe80::1]:50",
                                 "ipv6:%5B::12%5D:50", "ipv6:[::10]:50", "", "unknown"}) {
    EXPECT_FALSE(IsLocal(peer)) << peer;
  }
}

}  // namespace
}  // namespace tactus::service
