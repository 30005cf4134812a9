#include "tests/coordinator/server_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tactus::service {

v1::JobSpec SmallSpec() {
  v1::JobSpec spec;
  spec.set_name("small");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_stop()->set_rounds(1);
  spec.mutable_workers()->set_min(2);
  spec.mutable_workers()->set_max(2);
  return spec;
}

void ServerFixture::SetUp() {
  std::string pattern = testing::TempDir() + "tactus-XXXXXX";
  folder_ = ::mkdtemp(pattern.data());
  Start();
}

void ServerFixture::TearDown() {
  Stop();
  std::filesystem::remove_all(folder_);
}

void ServerFixture::Start() {
  options_.state_dir = StateFolder();
  auto server = Server::Open(options_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = NewChannel();
  jobs_ = v1::Jobs::NewStub(channel_);
  nodes_ = v1::Nodes::NewStub(channel_);
  admin_ = v1::Admin::NewStub(channel_);
  artifacts_ = v1::Artifacts::NewStub(channel_);
}

void ServerFixture::Stop() {
  jobs_.reset();
  nodes_.reset();
  admin_.reset();
  artifacts_.reset();
  channel_.reset();
  if (server_ != nullptr) server_->Shutdown();
  server_.reset();
}

// A connection of its own, with room for messages that the server does not take.
std::shared_ptr<grpc::Channel> ServerFixture::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

absl::StatusOr<v1::Job> ServerFixture::Create(const v1::JobSpec& spec,
                                              const std::string& request_id) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  return Call(jobs_, &v1::Jobs::Stub::CreateJob, request);
}

absl::StatusOr<v1::Job> ServerFixture::Get(const std::string& name, const std::string& after) {
  v1::GetJobRequest request;
  request.set_name(name);
  request.set_wait_for_change_after(after);
  return Call(jobs_, &v1::Jobs::Stub::GetJob, request);
}

absl::StatusOr<v1::Job> ServerFixture::Cancel(const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  return Call(jobs_, &v1::Jobs::Stub::CancelJob, request);
}

}  // namespace tactus::service
