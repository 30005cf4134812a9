// A coordinator for tests of the agent: a real gRPC server that records what agents say.

#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tactus/agent/v1/session.grpc.pb.h"
#include "tests/agent/daemon/fake_artifacts.h"

namespace tactus::agent {

// One agent at a time. Serves on a port of 127.0.0.1 until destruction.
class FakeCoordinator final : public tactus::agent::v1::AgentSession::Service {
 public:
  using FromAgent = tactus::agent::v1::FromAgent;
  using ToAgent = tactus::agent::v1::ToAgent;

  // How it treats the agent.
  struct Manners {
    bool acknowledges = true;
    double heartbeat_seconds = 60;
    int refused_uploads = 0;  // so many, then the next is taken
    grpc::StatusCode upload_refusal = grpc::StatusCode::UNAVAILABLE;
    std::string refusal_reason = {};  // for programs
    std::string held_upload = {};     // this path's wait until it becomes another; empty: none
    bool other_version = false;       // it refuses the agent
    std::string server_id = {};       // who it says it is
    std::uint64_t epoch = 0;
  };

  // port 0: a free one.
  explicit FakeCoordinator(const Manners& manners, int port = 0);
  ~FakeCoordinator() override;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  // Sends `message` with the given sequence number, or the next one.
  void Send(ToAgent message, std::uint64_t sequence = 0);

  // Starts worker `id` with a job called `behaviour` (see fake_worker/main.cc) on `device`.
  void StartWorker(std::uint64_t id, const std::string& behaviour,
                   const std::string& device = "cpu:0");
  void SendPlan(std::uint64_t worker, std::uint64_t version);
  void SendStop(std::uint64_t worker);

  // The same, of an array.
  void StartInArray(std::uint64_t id, const std::string& behaviour, const std::string& array,
                    const std::string& device = "cpu:0");

  // Starts worker `id` with what `start` says; see StartWorker.
  void StartWith(std::uint64_t id, const std::string& behaviour, tactus::v1::Start start,
                 const std::string& array = "");
  void StopWorker(std::uint64_t id, int grace_seconds = 0);
  // Asks where the worker stands, and waits for the answer.
  tactus::v1::Standing LookAt(std::uint64_t worker);

  FakeArtifacts& artifacts() { return artifacts_; }

  // Breaks the stream; the agent's next Welcome says `acknowledged`.
  void Drop(std::uint64_t acknowledged);

  // Waits until `holds` is true of everything received so far; false when it never is.
  bool Await(const std::function<bool(const std::vector<FromAgent>& received)>& holds);
  // Waits for a message that satisfies `wanted`; an empty one when it never comes.
  FromAgent AwaitMessage(const std::function<bool(const FromAgent& message)>& wanted);
  agent::v1::WorkerExited AwaitExit(std::uint64_t worker);  // the same, for its exit
  // It treats the agent otherwise from the next Hello on.
  void Become(const Manners& manners);
  std::size_t hellos();

  // Waits for the n-th Hello, from 1.
  FromAgent AwaitHello(std::size_t count);

  // Numbered messages, in the order of arrival over all streams, repeated ones included.
  std::vector<FromAgent> received();
  std::size_t heartbeats();
  // The paths of those that were taken, in their order.
  std::vector<std::string> upload_order();
  // Files by their paths.
  std::map<std::string, std::string> uploaded();
  // The first message of the newest upload, without its data.
  tactus::agent::v1::UploadArtifactRequest upload_header();
  // What workers wrote, put together by worker; the pieces' offsets are checked.
  std::string AwaitOutput(std::uint64_t worker, const std::string& end);
  bool AwaitUpload(const std::string& path);
  bool AwaitHeldUpload();  // one waits

  grpc::Status Session(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<ToAgent, FromAgent>* stream) override;
  grpc::Status UploadArtifact(grpc::ServerContext* context,
                              grpc::ServerReader<tactus::agent::v1::UploadArtifactRequest>* reader,
                              tactus::agent::v1::UploadArtifactResponse* response) override;

 private:
  bool AwaitLocked(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds);
  void Receive(const FromAgent& message);
  // As of jobs that cannot go on without the node's workers.
  void SuspendWorkers(const std::string& reason);
  void HoldLocked(std::unique_lock<std::mutex>& lock, const std::string& path,
                  const grpc::ServerContext& context);

  Manners manners_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ServerContext* context_ = nullptr;                          // of the present stream
  grpc::ServerReaderWriter<ToAgent, FromAgent>* stream_ = nullptr;  // null: none
  std::uint64_t sent_ = 0;
  std::vector<std::uint64_t> started_;  // workers
  std::uint64_t acknowledged_ = 0;      // for the next Welcome
  std::vector<FromAgent> hellos_;
  std::vector<FromAgent> received_;
  std::size_t heartbeats_ = 0;
  int held_ = 0;
  std::vector<std::string> upload_order_;
  std::map<std::string, std::string> uploaded_;
  tactus::agent::v1::UploadArtifactRequest upload_header_;
  FakeArtifacts artifacts_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tactus::agent
