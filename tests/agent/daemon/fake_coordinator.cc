#include "tests/agent/daemon/fake_coordinator.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "base/check.h"
#include "runtime/status.h"
#include "tests/agent/daemon/await.h"

namespace tactus::agent {

using tactus::agent::v1::UploadArtifactRequest;
using tactus::agent::v1::UploadArtifactResponse;

namespace {

constexpr std::chrono::milliseconds kCancelCheck{20};

}  // namespace

FakeCoordinator::FakeCoordinator(const Manners& manners, int port) : manners_(manners) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  builder.RegisterService(&artifacts_);
  server_ = builder.BuildAndStart();
  TACTUS_CHECK(server_ != nullptr);
}

FakeCoordinator::~FakeCoordinator() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakeCoordinator::Send(ToAgent message, std::uint64_t sequence) {
  std::unique_lock lock(mutex_);
  TACTUS_CHECK(AwaitLocked(lock, [this] { return stream_ != nullptr; }));
  message.set_sequence(sequence != 0 ? sequence : ++sent_);
  stream_->Write(message);
}

void FakeCoordinator::StartWorker(std::uint64_t id, const std::string& behaviour,
                                  const std::string& device) {
  tactus::v1::Start start;
  start.set_device(device);
  StartWith(id, behaviour, start);
}

void FakeCoordinator::StartInArray(std::uint64_t id, const std::string& behaviour,
                                   const std::string& array, const std::string& device) {
  tactus::v1::Start start;
  start.set_device(device);
  StartWith(id, behaviour, start, array);
}

void FakeCoordinator::StartWith(std::uint64_t id, const std::string& behaviour,
                                tactus::v1::Start start, const std::string& array) {
  if (start.device().empty()) start.set_device("cpu:0");
  start.set_job_id(behaviour + "-1");
  start.mutable_spec()->set_name(behaviour);
  ToAgent message;
  message.mutable_start_worker()->set_worker_id(id);
  message.mutable_start_worker()->set_array(array);
  *message.mutable_start_worker()->mutable_start() = std::move(start);
  {
    const std::lock_guard lock(mutex_);
    started_.push_back(id);
  }
  Send(message);
}

void FakeCoordinator::StopWorker(std::uint64_t id, int grace_seconds) {
  ToAgent message;
  message.mutable_stop_worker()->set_worker_id(id);
  message.mutable_stop_worker()->mutable_grace()->set_seconds(grace_seconds);
  Send(message);
}

tactus::v1::Standing FakeCoordinator::LookAt(std::uint64_t worker) {
  const auto answers = [](const std::vector<FromAgent>& received) {
    std::vector<tactus::v1::Standing> found;
    for (const FromAgent& message : received) {
      const tactus::v1::FromWorker& said = message.from_worker().message();
      if (said.has_standing()) found.push_back(said.standing());
    }
    return found;
  };
  const std::size_t before = answers(received()).size();
  ToAgent message;
  message.mutable_look_at_worker()->set_worker_id(worker);
  Send(message);
  const bool answered =
      Await([&](const auto& received) { return answers(received).size() > before; });
  EXPECT_TRUE(answered) << "nothing was said of worker " << worker;
  if (!answered) return {};
  return answers(received()).back();
}

void FakeCoordinator::SendPlan(std::uint64_t worker, std::uint64_t version) {
  ToAgent message;
  message.mutable_to_worker()->set_worker_id(worker);
  message.mutable_to_worker()->mutable_message()->mutable_plan()->set_version(version);
  Send(message);
}

void FakeCoordinator::SendStop(std::uint64_t worker) {
  ToAgent message;
  message.mutable_to_worker()->set_worker_id(worker);
  message.mutable_to_worker()->mutable_message()->mutable_stop()->set_reason("the test");
  Send(message);
}

void FakeCoordinator::Become(const Manners& manners) {
  const std::lock_guard lock(mutex_);
  manners_ = manners;
  changed_.notify_all();
}

std::size_t FakeCoordinator::hellos() {
  const std::lock_guard lock(mutex_);
  return hellos_.size();
}

void FakeCoordinator::Drop(std::uint64_t acknowledged) {
  std::unique_lock lock(mutex_);
  TACTUS_CHECK(AwaitLocked(lock, [this] { return stream_ != nullptr; }));
  acknowledged_ = acknowledged;
  stream_ = nullptr;
  context_->TryCancel();
}

bool FakeCoordinator::AwaitLocked(std::unique_lock<std::mutex>& lock,
                                  const std::function<bool()>& holds) {
  return changed_.wait_for(lock, kPatience, holds);
}

bool FakeCoordinator::Await(const std::function<bool(const std::vector<FromAgent>&)>& holds) {
  std::unique_lock lock(mutex_);
  return AwaitLocked(lock, [&] { return holds(received_); });
}

FakeCoordinator::FromAgent FakeCoordinator::AwaitMessage(
    const std::function<bool(const FromAgent&)>& wanted) {
  FromAgent found;
  Await([&](const std::vector<FromAgent>& received) {
    for (const FromAgent& message : received) {
      if (!wanted(message)) continue;
      found = message;
      return true;
    }
    return false;
  });
  return found;
}

agent::v1::WorkerExited FakeCoordinator::AwaitExit(std::uint64_t worker) {
  return AwaitMessage([worker](const FromAgent& message) {
           return message.worker_exited().worker_id() == worker;
         })
      .worker_exited();
}

FakeCoordinator::FromAgent FakeCoordinator::AwaitHello(std::size_t count) {
  std::unique_lock lock(mutex_);
  if (!AwaitLocked(lock, [&] { return hellos_.size() >= count; })) return {};
  return hellos_[count - 1];
}

std::vector<FakeCoordinator::FromAgent> FakeCoordinator::received() {
  const std::lock_guard lock(mutex_);
  return received_;
}

std::size_t FakeCoordinator::heartbeats() {
  const std::lock_guard lock(mutex_);
  return heartbeats_;
}

std::vector<std::string> FakeCoordinator::upload_order() {
  const std::lock_guard lock(mutex_);
  return upload_order_;
}

std::map<std::string, std::string> FakeCoordinator::uploaded() {
  const std::lock_guard lock(mutex_);
  return uploaded_;
}

UploadArtifactRequest FakeCoordinator::upload_header() {
  const std::lock_guard lock(mutex_);
  return upload_header_;
}

std::string FakeCoordinator::AwaitOutput(std::uint64_t worker, const std::string& end) {
  std::string text;
  Await([&](const std::vector<FromAgent>& received) {
    text.clear();
    for (const FromAgent& message : received) {
      if (message.log_lines().worker_id() != worker) continue;
      TACTUS_CHECK(message.log_lines().offset() == text.size());
      text += message.log_lines().text();
    }
    return text.ends_with(end);
  });
  return text;
}

bool FakeCoordinator::AwaitUpload(const std::string& path) {
  std::unique_lock lock(mutex_);
  return AwaitLocked(lock, [&] { return uploaded_.contains(path); });
}

bool FakeCoordinator::AwaitHeldUpload() {
  std::unique_lock lock(mutex_);
  return AwaitLocked(lock, [this] { return held_ > 0; });
}

// The end of a call is not told to whom it is served by.
void FakeCoordinator::HoldLocked(std::unique_lock<std::mutex>& lock, const std::string& path,
                                 const grpc::ServerContext& context) {
  if (manners_.held_upload != path) return;
  ++held_;
  changed_.notify_all();
  while (manners_.held_upload == path && !context.IsCancelled()) {
    changed_.wait_for(lock, kCancelCheck);
  }
  --held_;
}

void FakeCoordinator::SuspendWorkers(const std::string& reason) {
  for (const std::uint64_t worker : started_) {
    ToAgent message;
    message.set_sequence(++sent_);
    message.mutable_to_worker()->set_worker_id(worker);
    tactus::v1::StopRequest& stop = *message.mutable_to_worker()->mutable_message()->mutable_stop();
    stop.set_reason(reason);
    stop.set_suspend(true);
    if (stream_ != nullptr) stream_->Write(message);
  }
}

void FakeCoordinator::Receive(const FromAgent& message) {
  if (message.has_heartbeat()) ++heartbeats_;
  if (message.sequence() == 0) return;
  received_.push_back(message);
  if (message.has_leaving())
    SuspendWorkers("node node-1 is leaving: " + message.leaving().reason());
  if (!manners_.acknowledges || stream_ == nullptr) return;
  ToAgent acknowledgement;
  acknowledgement.set_acknowledged(message.sequence());
  stream_->Write(acknowledgement);
}

grpc::Status FakeCoordinator::Session(grpc::ServerContext* context,
                                      grpc::ServerReaderWriter<ToAgent, FromAgent>* stream) {
  FromAgent message;
  if (!stream->Read(&message) || !message.has_hello()) return grpc::Status::OK;
  const bool refuses = [this] {
    const std::lock_guard lock(mutex_);
    return manners_.other_version;
  }();
  if (refuses) {
    const std::lock_guard lock(mutex_);
    hellos_.push_back(message);
    changed_.notify_all();
    return runtime::ToGrpc(
        runtime::WithReason(absl::FailedPreconditionError("found 1.2.3, this is 9.9.9"),
                            {.reason = "AGENT_VERSION_MISMATCH"}));
  }
  {
    const std::lock_guard lock(mutex_);
    ToAgent welcome;
    const auto nanos = static_cast<std::int64_t>(manners_.heartbeat_seconds * 1e9);
    welcome.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(nanos / 1'000'000'000);
    welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(
        static_cast<std::int32_t>(nanos % 1'000'000'000));
    welcome.mutable_welcome()->set_acknowledged(acknowledged_);
    welcome.mutable_welcome()->set_server_id(manners_.server_id);
    welcome.mutable_welcome()->set_epoch(manners_.epoch);
    stream->Write(welcome);
    hellos_.push_back(message);
    stream_ = stream;
    context_ = context;
    changed_.notify_all();
  }
  while (stream->Read(&message)) {
    const std::lock_guard lock(mutex_);
    Receive(message);
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (stream_ == stream) stream_ = nullptr;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::UploadArtifact(grpc::ServerContext* context,
                                             grpc::ServerReader<UploadArtifactRequest>* reader,
                                             UploadArtifactResponse*) {
  UploadArtifactRequest request;
  if (!reader->Read(&request)) return grpc::Status::OK;
  const std::string path = request.job_id() + "/" + request.path();
  const std::uint64_t size = request.size_bytes();
  // What came before is not looked at here.
  std::string content = std::string(request.offset(), '?') + request.data();
  UploadArtifactRequest header = request;
  header.clear_data();
  while (reader->Read(&request)) content += request.data();
  std::unique_lock lock(mutex_);
  HoldLocked(lock, path, *context);
  if (context->IsCancelled()) return grpc::Status::CANCELLED;
  if (manners_.refused_uploads > 0) {
    --manners_.refused_uploads;
    if (manners_.refusal_reason.empty()) return {manners_.upload_refusal, "not now"};
    return runtime::ToGrpc(runtime::WithReason(
        absl::Status(static_cast<absl::StatusCode>(manners_.upload_refusal), "not now"),
        {.reason = manners_.refusal_reason}));
  }
  if (content.size() != size) return {grpc::StatusCode::DATA_LOSS, "cut short"};
  upload_order_.push_back(path);
  uploaded_[path] = content;
  upload_header_ = header;
  changed_.notify_all();
  return grpc::Status::OK;
}

}  // namespace tactus::agent
