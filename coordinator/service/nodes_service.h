// tactus.v1.Nodes. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/door.h"
#include "coordinator/shell/core_runner.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::service {

class NodesService final : public v1::Nodes::CallbackService {
 public:
  // Both outlive the service.
  NodesService(CoreRunner& core, const Door& door) : core_(core), door_(door) {}

  // A page token is the name of the last node of the page before.
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context,
                                    const v1::GetNodeRequest* request, v1::Node* response) override;
  grpc::ServerUnaryReactor* CordonNode(grpc::CallbackServerContext* context,
                                       const v1::CordonNodeRequest* request,
                                       v1::Node* response) override;
  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                      const v1::DrainNodeRequest* request,
                                      v1::Node* response) override;
  grpc::ServerUnaryReactor* UncordonNode(grpc::CallbackServerContext* context,
                                         const v1::UncordonNodeRequest* request,
                                         v1::Node* response) override;
  grpc::ServerUnaryReactor* DeleteNode(grpc::CallbackServerContext* context,
                                       const v1::DeleteNodeRequest* request,
                                       google::protobuf::Empty* response) override;
  grpc::ServerUnaryReactor* ProbeLink(grpc::CallbackServerContext* context,
                                      const v1::ProbeLinkRequest* request,
                                      v1::ProbeLinkResponse* response) override;

 private:
  CoreRunner& core_;
  const Door& door_;
};

// The name of a node in "nodes/NAME", or NAME alone. Errors: InvalidArgument, by the field's name.
absl::StatusOr<std::string> ParseNodeName(const std::string& field, const std::string& text);

}  // namespace tactus::service
