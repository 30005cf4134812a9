// Every rpc that a coordinator serves, called by everybody who might: who is let in is held against
// a table (tests/golden/every_door.txt), and nobody without a good certificate is, anywhere.

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "coordinator/access/method_rules.h"
#include "identity/request.h"
#include "runtime/sha256.h"
#include "tactus/agent/v1/session.grpc.pb.h"
#include "tactus/v1/enrolment.grpc.pb.h"
#include "tests/coordinator/fake_agent.h"
#include "tests/coordinator/tls_fixture.h"

namespace tactus::service {
namespace {

// How a call ended for whoever made it.
enum class Found { kIn, kRefused, kClosed };

const char* WordOf(Found found) {
  switch (found) {
    case Found::kIn:
      return "in";
    case Found::kRefused:
      return "refused";
    case Found::kClosed:
      return "closed";  // the connection, before any call
  }
  return "";
}

constexpr char kContent[] = "to be or not to be";

// Who calls: a certificate of the fixture, and how the table calls them. The order matters: whoever
// may end things comes last.
struct Column {
  const char* who;
  const char* title;
};
constexpr Column kColumns[] = {
    {"nobody", "no certificate"}, {"other", "other CA"},           {"expired", "expired"},
    {"revoked", "revoked"},       {"user/mallory", "no role"},     {"coordinator", "coordinator"},
    {"user/vera", "viewer"},      {"user/bob", "other submitter"}, {"node/b", "other node"},
    {"node/a", "its node"},       {"user/alice", "its submitter"}, {"user/root", "admin"},
};

class EveryDoorTest : public TlsFixture {
 protected:
  void SetUp() override {
    TlsFixture::SetUp();
    // A blob of alice's, a job of hers that reads it, and its two workers on node a.
    channel_ = ChannelOf("user/alice");
    jobs_ = v1::Jobs::NewStub(channel_);
    UploadBlob();
    agent_a_ = std::make_unique<FakeAgent>(ChannelOf("node/a"), "a");
    agent_b_ = std::make_unique<FakeAgent>(ChannelOf("node/b"), "b");
    agent_a_->Connect();
    v1::JobSpec spec = SmallSpec();
    spec.mutable_data()->set_text("sha256:" + runtime::Sha256Of(kContent));
    const auto created = Create(spec);
    ASSERT_TRUE(created.ok()) << created.status();
    EXPECT_EQ(created->owner(), "user/alice");
    job_ = created->name();
    worker_ = agent_a_->Read().start_worker().worker_id();
    ASSERT_NE(worker_, 0u);
    agent_b_->Connect();
    request_ = *identity::MakeRequest(*identity::MakeKey());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::CreateTokenRequest request;
    request.set_node("a");
    v1::CreateTokenResponse made;
    const auto stub = v1::Enrolment::NewStub(ChannelOf("user/root"));
    ASSERT_TRUE(stub->CreateToken(&context, request, &made).ok());
    token_ = made.token();
  }

  void TearDown() override {
    agent_a_.reset();
    agent_b_.reset();
    TlsFixture::TearDown();
  }

  void UploadBlob() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::Blob blob;
    const auto stub = v1::Artifacts::NewStub(channel_);
    const auto writer = stub->UploadBlob(&context, &blob);
    v1::UploadBlobRequest request;
    request.set_sha256(runtime::Sha256Of(kContent));
    request.set_size_bytes(sizeof kContent - 1);
    request.set_data(kContent);
    writer->Write(request);
    writer->WritesDone();
    ASSERT_TRUE(writer->Finish().ok());
  }

  // What a call of the method says, about alice's job and node a.
  std::string RequestOf(const std::string& path) const {
    const std::string method = access::ShortMethod(path);
    if (method == "Jobs/CreateJob") {
      v1::CreateJobRequest request;
      *request.mutable_spec() = SmallSpec();
      return request.SerializeAsString();
    }
    if (method == "Jobs/RevertDecision") return Named(job_ + "/decisions/1-batch");
    if (method == "Jobs/DownloadArtifact") {
      v1::DownloadArtifactRequest request;
      request.set_name(job_);
      request.set_path("model.pt");
      return request.SerializeAsString();
    }
    if (method == "Nodes/ListNodes" || method == "Jobs/ListJobs") return "";
    if (method.starts_with("Jobs/")) return Named(job_);
    if (method.starts_with("Nodes/")) return Named("nodes/a");
    if (method.starts_with("Artifacts/")) {
      v1::UploadBlobRequest request;  // all three have the hash in the same place
      request.set_sha256(runtime::Sha256Of(kContent));
      if (method == "Artifacts/UploadBlob") request.set_size_bytes(sizeof kContent - 1);
      return request.SerializeAsString();
    }
    if (method == "Admin/SetLogLevel") {
      v1::SetLogLevelRequest request;
      request.set_level("warn");
      return request.SerializeAsString();
    }
    if (method == "Enrolment/CreateToken") {
      v1::CreateTokenRequest request;
      request.set_node("new");
      return request.SerializeAsString();
    }
    if (method == "Enrolment/Enrol") {
      v1::EnrolRequest request;
      request.set_token(token_);
      request.set_certificate_request(request_);
      return request.SerializeAsString();
    }
    if (method == "Enrolment/Renew") {
      v1::RenewRequest request;
      request.set_certificate_request(request_);
      return request.SerializeAsString();
    }
    if (method == "AgentSession/Session") return Hello();
    if (method == "AgentSession/UploadArtifact") {
      agent::v1::UploadArtifactRequest request;
      request.set_job_id(job_);
      request.set_path("model.pt");
      request.set_size_bytes(1);
      request.set_data("x");
      request.set_worker_id(worker_);
      return request.SerializeAsString();
    }
    return "";
  }

  static std::string Named(const std::string& name) {
    v1::GetJobRequest request;  // the first field of all these is the name
    request.set_name(name);
    return request.SerializeAsString();
  }

  static std::string Hello() {
    agent::v1::FromAgent message;
    message.mutable_hello()->set_node("a");
    message.mutable_hello()->set_incarnation(4711);
    message.mutable_hello()->add_devices()->set_name("cpu:0");
    message.mutable_hello()->mutable_devices(0)->set_kind(v1::DEVICE_KIND_CPU);
    return message.SerializeAsString();
  }

  // One message there, then whatever comes first back: an answer, or the end.
  static Found Knock(grpc::GenericStub& stub, const std::string& path, const std::string& request,
                     grpc::Status* status) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    grpc::CompletionQueue queue;
    const auto await = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = stub.PrepareCall(&context, path, &queue);
    call->StartCall(nullptr);
    bool open = await();
    const grpc::Slice slice(request);
    grpc::ByteBuffer message(&slice, 1);
    if (open) {
      call->Write(message, nullptr);
      open = await();
    }
    if (open && path != "/tactus.agent.v1.AgentSession/Session") {
      call->WritesDone(nullptr);
      await();
    }
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    const bool answered = await();
    if (answered) context.TryCancel();
    call->Finish(status, nullptr);
    await();
    queue.Shutdown();
    while (await()) {
    }
    if (answered) return Found::kIn;
    if (status->error_code() == grpc::StatusCode::PERMISSION_DENIED ||
        status->error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      return Found::kRefused;
    }
    // The coordinator's own answers say why; gRPC's of a connection do not.
    const bool closed =
        status->error_code() == grpc::StatusCode::UNAVAILABLE && status->error_details().empty();
    return closed ? Found::kClosed : Found::kIn;
  }

  std::string job_;
  std::string token_;  // of a node that the policy names
  std::string request_;
  std::uint64_t worker_ = 0;  // rank 0 of the job, on node a
  std::unique_ptr<FakeAgent> agent_a_;
  std::unique_ptr<FakeAgent> agent_b_;
};

std::string Table(const std::map<std::string, std::map<std::string, Found>>& found) {
  std::string text = "rpc";
  for (const Column& column : kColumns) text += std::string(" | ") + column.title;
  text += "\n";
  for (const auto& [path, row] : found) {
    text += access::ShortMethod(path);
    for (const Column& column : kColumns) {
      text += std::string(" | ") + WordOf(row.at(column.title));
    }
    text += "\n";
  }
  return text;
}

TEST_F(EveryDoorTest, OnlyThoseAreLetInWhomTheTableHas) {
  std::map<std::string, std::map<std::string, Found>> found;
  std::size_t wrongly_in = 0;

  for (const Column& column : kColumns) {
    grpc::GenericStub stub(ChannelOf(column.who));
    for (const auto& [path, rule] : access::MethodRules()) {
      grpc::Status status;
      const Found one = Knock(stub, path, RequestOf(path), &status);
      found[path][column.title] = one;
      // Whoever has a token may come by the one door that is theirs.
      const bool theirs = rule.strangers() && std::string(column.who) == "nobody";
      const bool stranger = &column - kColumns < 6 && !theirs;
      if (stranger && one == Found::kIn) {
        ++wrongly_in;
        ADD_FAILURE() << path << " let in: " << column.title << ": " << status.error_message();
      }
    }
    grpc::Status status;
    EXPECT_NE(Knock(stub, "/tactus.v1.Jobs/Nothing", "", &status), Found::kIn) << column.title;
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << column.title;
  }

  EXPECT_EQ(wrongly_in, 0u);
  const char* const root = std::getenv("TACTUS_SOURCE");
  ASSERT_NE(root, nullptr);
  const std::string path = std::string(root) + "/tests/golden/every_door.txt";
  const std::string table = Table(found);
  if (std::getenv("TACTUS_REWRITE_GOLDEN") != nullptr) std::ofstream(path) << table;
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(table, expected.str());
}

// The table's rows are the rpcs that there are: what the server itself says of its services.
TEST_F(EveryDoorTest, EveryServiceIsBehindTheGate) {
  // As grpc.reflection.v1alpha has it: list_services is field 7, a string; of the answer the
  // services' names are read as bytes.
  grpc::GenericStub stub(ChannelOf("user/root"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(await());
  const grpc::Slice slice(std::string("\x3a\x01*"));
  grpc::ByteBuffer message(&slice, 1);
  call->Write(message, nullptr);
  ASSERT_TRUE(await());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(await());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& one : slices) {
    bytes.append(reinterpret_cast<const char*>(one.begin()), one.size());
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  queue.Shutdown();
  while (await()) {
  }

  std::size_t services = 0;
  const std::regex name(R"((?:tactus|grpc)\.[A-Za-z0-9.]+)");
  for (std::sregex_iterator at(bytes.begin(), bytes.end(), name), end; at != end; ++at) {
    ++services;
    const std::string begin = "/" + at->str() + "/";
    const bool has = std::ranges::any_of(
        access::MethodRules(), [&](const auto& entry) { return entry.first.starts_with(begin); });
    EXPECT_TRUE(has) << begin;
  }
  EXPECT_EQ(services, 9u);
}

}  // namespace
}  // namespace tactus::service
