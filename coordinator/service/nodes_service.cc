#include "coordinator/service/nodes_service.h"

#include <string>
#include <vector>

#include "coordinator/service/calls.h"

namespace tactus::service {
namespace {

// The nodes after the token, at most `size`; the list is sorted by name.
void FillPage(const std::vector<v1::Node>& nodes, const std::string& token, int size,
              v1::ListNodesResponse& response) {
  for (const v1::Node& node : nodes) {
    if (node.name() <= token) continue;
    if (response.nodes_size() == size) {
      response.set_next_page_token(response.nodes(size - 1).name());
      return;
    }
    *response.add_nodes() = node;
  }
}

}  // namespace

grpc::ServerUnaryReactor* NodesService::ListNodes(grpc::CallbackServerContext* context,
                                                  const v1::ListNodesRequest* request,
                                                  v1::ListNodesResponse* response) {
  const UnaryCall call(context, metrics_, "Nodes/ListNodes");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<int> size = PageSize(request->page_size(), {});
  if (!size.ok()) {
    call.Finish(size.status());
    return call.reactor();
  }
  core_.ListNodes(
      [call, request, response, size = *size](const absl::StatusOr<std::vector<v1::Node>>& nodes) {
        if (nodes.ok()) FillPage(*nodes, request->page_token(), size, *response);
        call.Finish(nodes.status());
      });
  return call.reactor();
}

}  // namespace tactus::service
