// What one caller may not take from the others, over real gRPC: each refusal is clear, counted and
// written down.

#include "coordinator/access/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coordinator/access/audit_chain.h"
#include "runtime/sha256.h"
#include "tactus/agent/v1/session.grpc.pb.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/silent_connection.h"
#include "tests/coordinator/tls_fixture.h"
#include "tests/support/http/http_client.h"

namespace tactus::service {
namespace {

using access::Bound;
using ::testing::HasSubstr;

std::string AuditText(const std::string& folder) {
  std::string text;
  for (const std::string& file : access::AuditFiles(folder + "/audit")) {
    std::ifstream in(folder + "/audit/" + file);
    std::stringstream content;
    content << in.rdbuf();
    text += content.str();
  }
  return text;
}

// A session that its agent opens and says nothing on.
class HalfOpenSession {
 public:
  explicit HalfOpenSession(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(agent::v1::AgentSession::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    stream_ = stub_->Session(&context_);
  }
  ~HalfOpenSession() {
    if (finished_) return;
    context_.TryCancel();
    stream_->Finish();
  }
  // Waits for what the coordinator ends it with.
  absl::Status End() {
    agent::v1::ToAgent message;
    while (stream_->Read(&message)) {
    }
    finished_ = true;
    return runtime::FromGrpc(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<agent::v1::AgentSession::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<agent::v1::FromAgent, agent::v1::ToAgent>> stream_;
  bool finished_ = false;
};

class BoundsTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.metrics_listen = "127.0.0.1:0";
    ServerFixture::SetUp();
  }
  void Restart() {
    Stop();
    Start();
  }
  absl::Status Upload(const std::string& content) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::Blob blob;
    const auto writer = artifacts_->UploadBlob(&context, &blob);
    v1::UploadBlobRequest request;
    request.set_sha256(runtime::Sha256Of(content));
    request.set_size_bytes(content.size());
    request.set_data(content);
    writer->Write(request);
    writer->WritesDone();
    return runtime::FromGrpc(writer->Finish());
  }
  // True once the audit log has a line of that method and code.
  bool IsAudited(const std::string& method, const std::string& code) {
    const std::string wanted_method = R"("method":")" + method + '"';
    const std::string wanted_code = R"("code":")" + code + '"';
    return Eventually([&] {
      std::istringstream lines(AuditText(StateFolder()));
      for (std::string line; std::getline(lines, line);) {
        if (line.find(wanted_method) != std::string::npos &&
            line.find(wanted_code) != std::string::npos) {
          return true;
        }
      }
      return false;
    });
  }
  std::string Metrics() { return support::Get(server_->metrics_address(), "/metrics"); }
  bool IsCounted(Bound bound) {
    const std::string row =
        std::string("tactus_refused_total{bound=\"") + access::NameOf(bound) + "\"} ";
    const std::string page = Metrics();
    const std::size_t at = page.find(row);
    return at != std::string::npos && page[at + row.size()] != '0';
  }
};

TEST_F(BoundsTest, ASessionWithoutAFirstMessageIsEnded) {
  options_.bounds.first_message = Seconds(0.2);
  Restart();
  HalfOpenSession session(channel_);

  const absl::Status ended = session.End();

  EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
  EXPECT_EQ(runtime::ReasonOf(ended).reason, "FIRST_MESSAGE_LATE");
  EXPECT_THAT(std::string(ended.message()), HasSubstr("within 200ms"));
  EXPECT_TRUE(IsAudited("AgentSession/Session", "DEADLINE_EXCEEDED"));
  EXPECT_TRUE(IsCounted(Bound::kFirstMessage));
  FakeAgent honest(channel_, "a");
  EXPECT_NE(honest.Connect().server_id(), "");
}

TEST_F(BoundsTest, AnUploadWithoutAHeaderIsEndedAndItsPlaceIsFree) {
  options_.bounds.first_message = Seconds(0.2);
  options_.transfers.client_uploads = 1;
  Restart();
  grpc::ClientContext context;
  v1::Blob blob;
  const auto writer = artifacts_->UploadBlob(&context, &blob);

  const absl::Status ended = runtime::FromGrpc(writer->Finish());

  EXPECT_EQ(access::BoundOf(ended), Bound::kFirstMessage) << ended;
  // The place is free when the call is over at the coordinator, too.
  EXPECT_TRUE(Eventually([&] { return Upload("content").ok(); }));
}

TEST_F(BoundsTest, AnAgentsOpenStreamIsNoCallAndHalfOpenOnesAre) {
  options_.bounds.calls_per_user = 3;
  Restart();
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int i = 0; i < 6; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(channel_, "a" + std::to_string(i)));
    ASSERT_NE(agents.back()->Connect().server_id(), "") << i;
  }
  std::vector<std::unique_ptr<HalfOpenSession>> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(std::make_unique<HalfOpenSession>(channel_));

  // One of the four is refused; the others hold the host's places.
  absl::Status refused;
  ASSERT_TRUE(Eventually([&] {
    refused = Create(SmallSpec()).status();
    return !refused.ok();
  }));

  EXPECT_EQ(access::BoundOf(refused), Bound::kCalls) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("host/127.0.0.1 has 3 under way"));
  EXPECT_TRUE(IsAudited("Jobs/CreateJob", "RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(IsCounted(Bound::kCalls));
  sessions.clear();
  EXPECT_TRUE(Eventually([&] { return Create(SmallSpec()).ok(); }));
}

TEST_F(BoundsTest, AHostBringsSoManyNodesAndNoMore) {
  options_.bounds.nodes_per_host = 2;
  Restart();
  FakeAgent first(channel_, "a");
  FakeAgent second(channel_, "b");
  FakeAgent third(channel_, "c");
  first.Connect();
  second.Connect();
  first.Connect();  // the same again

  third.Connect();

  const absl::Status refused = runtime::FromGrpc(third.Finish());
  EXPECT_EQ(access::BoundOf(refused), Bound::kNodes) << refused;
  EXPECT_TRUE(IsAudited("AgentSession/Session", "RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(IsCounted(Bound::kNodes));
}

TEST_F(BoundsTest, UploadsAreBoundedInBytes) {
  options_.bounds.upload_bytes_per_user = 100'000;
  Restart();
  ASSERT_TRUE(Upload(std::string(60'000, 'a')).ok());

  const absl::Status refused = Upload(std::string(60'000, 'b'));

  EXPECT_EQ(access::BoundOf(refused), Bound::kUploadBytes) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("host/127.0.0.1"));
  EXPECT_TRUE(IsAudited("Artifacts/UploadBlob", "RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(IsCounted(Bound::kUploadBytes));
  Restart();
  EXPECT_EQ(access::BoundOf(Upload(std::string(60'000, 'b'))), Bound::kUploadBytes);
}

// What a job has made comes in all the same.
TEST_F(BoundsTest, BelowTheFloorNothingIsAcceptedAndResultsAre) {
  FakeAgent agent(channel_, "a");
  agent.Connect();
  ASSERT_TRUE(Create(SmallSpec()).ok());
  options_.disk_floor = std::uint64_t{1} << 60;
  agent.Break();
  Restart();
  FakeAgent again(channel_, "a");
  again.Connect();

  const absl::Status upload = Upload("content");
  const absl::Status job = Create(SmallSpec()).status();
  const grpc::Status result = again.Upload("small-1", "model.pt", "weights", 7);

  for (const absl::Status& refused : {upload, job}) {
    EXPECT_EQ(access::BoundOf(refused), Bound::kDisk) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("MiB left"));
  }
  EXPECT_TRUE(result.ok()) << result.error_message();
  EXPECT_TRUE(IsAudited("Jobs/CreateJob", "RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(IsCounted(Bound::kDisk));
  EXPECT_THAT(Metrics(), HasSubstr("tactus_state_floor_bytes 1"));
}

TEST_F(BoundsTest, AHostHasSoManyConnectionsAndThoseThatEndMakeRoom) {
  options_.bounds.connections_per_host = 3;
  Restart();
  ASSERT_TRUE(Create(SmallSpec()).ok());  // the first connection
  std::vector<Descriptor> silent;
  for (int i = 0; i < 2; ++i) silent.push_back(ConnectSilently(server_->address()));

  EXPECT_TRUE(Closes(ConnectSilently(server_->address()), 5000));

  EXPECT_TRUE(Create(SmallSpec()).ok());  // on a connection that stands
  EXPECT_TRUE(IsAudited("connection", "RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(IsCounted(Bound::kConnections));
  silent.clear();
  const auto other = v1::Jobs::NewStub(NewChannel());
  v1::GetJobRequest request;
  request.set_name("small-1");
  EXPECT_TRUE(Eventually([&] { return Call(other, &v1::Jobs::Stub::GetJob, request).ok(); }));
}

class TlsBoundsTest : public TlsFixture {};

// Users behind one address do not take each other's calls, and one user's are one's from anywhere.
TEST_F(TlsBoundsTest, WithCertificatesItIsTheUserWhoIsBounded) {
  options_.bounds.calls_per_user = 1;
  Stop();
  Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::Blob blob;
  const auto holds = v1::Artifacts::NewStub(ChannelOf("user/alice"));
  const auto writer = holds->UploadBlob(&context, &blob);
  const auto alice = v1::Jobs::NewStub(ChannelOf("user/alice"));
  const auto bob = v1::Jobs::NewStub(ChannelOf("user/bob"));
  absl::Status refused;

  EXPECT_TRUE(Eventually([&] {
    refused = Call(alice, &v1::Jobs::Stub::ListJobs, v1::ListJobsRequest()).status();
    return !refused.ok();
  }));

  EXPECT_EQ(access::BoundOf(refused), Bound::kCalls) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("user/alice has 1"));
  EXPECT_TRUE(Call(bob, &v1::Jobs::Stub::ListJobs, v1::ListJobsRequest()).ok());
  context.TryCancel();
  writer->Finish();
}

}  // namespace
}  // namespace tactus::service
