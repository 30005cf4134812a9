// tactus.agent.v1.AgentSession: the agents' streams and uploads. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/file_calls.h"
#include "tactus/agent/v1/session.grpc.pb.h"

namespace tactus::service {

class AgentService final : public agent::v1::AgentSession::CallbackService {
 public:
  // All of it outlives the service.
  explicit AgentService(const FileSurroundings& surroundings) : around_(surroundings) {}

  grpc::ServerBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* UploadArtifact(
      grpc::CallbackServerContext* context, agent::v1::UploadArtifactResponse* response) override;

 private:
  const FileSurroundings around_;
};

}  // namespace tactus::service
