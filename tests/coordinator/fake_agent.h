// An agent that does what a test says, over a real stream.

#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tactus/agent/v1/session.grpc.pb.h"

namespace tactus {

// One agent process with two cpu devices. Calls block until the coordinator answers, for a minute
// at most.
class FakeAgent {
 public:
  FakeAgent(const std::string& coordinator, const std::string& node);
  // Whatever the channel's certificate says.
  FakeAgent(const std::shared_ptr<grpc::Channel>& channel, const std::string& node);
  ~FakeAgent();  // Break()

  // Opens a stream of this incarnation and returns the Welcome.
  agent::v1::Welcome Connect();
  // Cuts the stream, as a network would.
  void Break();

  // The next numbered message, remembered as received; a message without contents when the stream
  // ended.
  agent::v1::ToAgent Read();

  // Says something; it is numbered here.
  void Say(std::uint64_t worker, const v1::FromWorker& message);
  // Says what was said under this number once more.
  void SayAgain(std::uint64_t sequence);
  void Exit(std::uint64_t worker);
  // These devices are at fault, for these reasons, and no others.
  void SayFaults(const std::map<std::string, std::string>& reasons);
  // What a worker wrote, from `offset` of its output on.
  void Log(const std::string& job, std::uint64_t worker, std::uint64_t offset,
           const std::string& text);

  // What it found of a link.
  void SayProbed(const agent::v1::LinkProbed& probed);

  // Uploads `content`, saying that it has `size_bytes` and is of `worker`; 0: says of nobody.
  grpc::Status Upload(const std::string& job, const std::string& path, const std::string& content,
                      std::uint64_t size_bytes, std::uint64_t worker = 0);

  // How the stream ended. Requires: it did.
  grpc::Status Finish();

  // Of the next Hello:
  std::vector<std::uint64_t> running_workers;
  std::map<std::string, std::string> faults;  // reasons by device

 private:
  void Write(agent::v1::FromAgent message);

  const std::string node_;
  const std::uint64_t incarnation_;
  const std::unique_ptr<agent::v1::AgentSession::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<agent::v1::FromAgent, agent::v1::ToAgent>> stream_;
  std::vector<agent::v1::FromAgent> said_;  // by number, from 1
  std::uint64_t received_ = 0;
};

}  // namespace tactus
