#include "tests/coordinator/fake_agent.h"

#include <atomic>
#include <chrono>
#include <utility>

namespace tactus {
namespace {

std::unique_ptr<grpc::ClientContext> NewContext() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  return context;
}

std::uint64_t NextIncarnation() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

FakeAgent::FakeAgent(const std::string& coordinator, const std::string& node)
    : FakeAgent(grpc::CreateChannel(coordinator, grpc::InsecureChannelCredentials()), node) {}

FakeAgent::FakeAgent(const std::shared_ptr<grpc::Channel>& channel, const std::string& node)
    : node_(node),
      incarnation_(NextIncarnation()),
      stub_(agent::v1::AgentSession::NewStub(channel)) {}

FakeAgent::~FakeAgent() { Break(); }

agent::v1::Welcome FakeAgent::Connect() {
  Break();
  context_ = NewContext();
  stream_ = stub_->Session(context_.get());
  agent::v1::FromAgent first;
  first.set_acknowledged(received_);
  first.mutable_hello()->set_node(node_);
  first.mutable_hello()->set_incarnation(incarnation_);
  for (const char* name : {"cpu:0", "cpu:1"}) {
    v1::Device* device = first.mutable_hello()->add_devices();
    device->set_name(name);
    device->set_kind(v1::DEVICE_KIND_CPU);
    const auto fault = faults.find(name);
    if (fault != faults.end()) device->set_fault(fault->second);
  }
  first.mutable_hello()->mutable_running_workers()->Add(running_workers.begin(),
                                                        running_workers.end());
  stream_->Write(first);
  agent::v1::ToAgent welcome;
  stream_->Read(&welcome);
  return welcome.welcome();
}

void FakeAgent::Break() {
  if (stream_ == nullptr) return;
  context_->TryCancel();
  stream_->Finish();
  stream_.reset();
}

agent::v1::ToAgent FakeAgent::Read() {
  agent::v1::ToAgent message;
  while (stream_->Read(&message)) {
    if (message.sequence() == 0) continue;
    received_ = message.sequence();
    return message;
  }
  return {};
}

void FakeAgent::Say(std::uint64_t worker, const v1::FromWorker& message) {
  agent::v1::FromAgent said;
  said.mutable_from_worker()->set_worker_id(worker);
  *said.mutable_from_worker()->mutable_message() = message;
  Write(std::move(said));
}

void FakeAgent::SayAgain(std::uint64_t sequence) { stream_->Write(said_.at(sequence - 1)); }

void FakeAgent::Exit(std::uint64_t worker) {
  agent::v1::FromAgent said;
  said.mutable_worker_exited()->set_worker_id(worker);
  Write(std::move(said));
}

void FakeAgent::SayFaults(const std::map<std::string, std::string>& reasons) {
  agent::v1::FromAgent said;
  said.mutable_device_faults();
  for (const auto& [device, reason] : reasons) {
    agent::v1::DeviceFault* fault = said.mutable_device_faults()->add_faults();
    fault->set_device(device);
    fault->set_reason(reason);
  }
  Write(std::move(said));
}

void FakeAgent::Log(const std::string& job, std::uint64_t worker, std::uint64_t offset,
                    const std::string& text) {
  agent::v1::FromAgent said;
  said.mutable_log_lines()->set_worker_id(worker);
  said.mutable_log_lines()->set_job_id(job);
  said.mutable_log_lines()->set_offset(offset);
  said.mutable_log_lines()->set_text(text);
  Write(std::move(said));
}

void FakeAgent::SayProbed(const agent::v1::LinkProbed& probed) {
  agent::v1::FromAgent said;
  *said.mutable_link_probed() = probed;
  Write(std::move(said));
}

void FakeAgent::Write(agent::v1::FromAgent message) {
  message.set_sequence(said_.size() + 1);
  message.set_acknowledged(received_);
  said_.push_back(message);
  stream_->Write(message);
}

grpc::Status FakeAgent::Upload(const std::string& job, const std::string& path,
                               const std::string& content, std::uint64_t size_bytes,
                               std::uint64_t worker) {
  const std::unique_ptr<grpc::ClientContext> context = NewContext();
  agent::v1::UploadArtifactResponse response;
  const auto writer = stub_->UploadArtifact(context.get(), &response);
  agent::v1::UploadArtifactRequest request;
  request.set_job_id(job);
  request.set_path(path);
  request.set_size_bytes(size_bytes);
  request.set_worker_id(worker);
  writer->Write(request);
  agent::v1::UploadArtifactRequest data;
  data.set_data(content);
  writer->Write(data);
  writer->WritesDone();
  return writer->Finish();
}

grpc::Status FakeAgent::Finish() {
  const grpc::Status status = stream_->Finish();
  stream_.reset();
  return status;
}

}  // namespace tactus
