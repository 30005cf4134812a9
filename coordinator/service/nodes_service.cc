#include "coordinator/service/nodes_service.h"

#include <string>
#include <utility>

#include "coordinator/service/calls.h"
#include "coordinator/spec/field_checks.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr char kPrefix[] = "nodes/";
constexpr std::size_t kNameBytesMax = 253;
constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

Answer<v1::Node> WithNode(const UnaryCall& call, v1::Node* response) {
  return [call, response](const absl::StatusOr<v1::Node>& node) {
    if (node.ok()) *response = *node;
    call.Finish(node.status());
  };
}

grpc::ServerUnaryReactor* Mark(CoreRunner& core, const UnaryCall& call, const std::string& text,
                               NodeMarking marking, v1::Node* response) {
  return call.AskWith(ParseNodeName("name", text), [&](const std::string& name) {
    call.visit().About(kPrefix + name);
    core.MarkNode(name, marking, WithNode(call, response));
  });
}

absl::StatusOr<CoreRunner::LinkQuery> ParseLink(const v1::ProbeLinkRequest& request) {
  const absl::StatusOr<std::string> from = ParseNodeName("from", request.from());
  if (!from.ok()) return from.status();
  const absl::StatusOr<std::string> to = ParseNodeName("to", request.to());
  if (!to.ok()) return to.status();
  if (*from == *to) {
    return runtime::InvalidFields(
        {{.field = "to",
          .description = "found " + spec::Shown(*to) + ", allowed is another node"}});
  }
  return CoreRunner::LinkQuery{
      .from = *from, .to = *to, .while_training = request.while_training()};
}

}  // namespace

absl::StatusOr<std::string> ParseNodeName(const std::string& field, const std::string& text) {
  const std::string name = text.starts_with(kPrefix) ? text.substr(sizeof(kPrefix) - 1) : text;
  if (!name.empty() && name.size() <= kNameBytesMax &&
      name.find_first_not_of(kLetters) == std::string::npos) {
    return name;
  }
  return runtime::InvalidFields({{.field = field,
                                  .description = "found " + spec::Shown(text) +
                                                 ", allowed is nodes/NAME, or NAME alone, of 1 to "
                                                 "253 letters, digits, \".\", \"_\" and \"-\""}});
}

grpc::ServerUnaryReactor* NodesService::ListNodes(grpc::CallbackServerContext* context,
                                                  const v1::ListNodesRequest* request,
                                                  v1::ListNodesResponse* response) {
  const UnaryCall call(context, door_, "Nodes/ListNodes");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<int> size = PageSize(request->page_size(), {});
  absl::StatusOr<std::string> after = std::string();
  if (!request->page_token().empty()) after = ParseNodeName("page_token", request->page_token());
  if (!size.ok() || !after.ok()) {
    call.Finish(size.ok() ? after.status() : size.status());
    return call.reactor();
  }
  core_.ListNodes(*size, *after, [call, response](absl::StatusOr<NodePage> page) {
    if (!page.ok()) return call.Finish(page.status());
    for (v1::Node& node : page->nodes) *response->add_nodes() = std::move(node);
    if (!page->next.empty()) response->set_next_page_token(kPrefix + page->next);
    call.Finish(absl::OkStatus());
  });
  return call.reactor();
}

grpc::ServerUnaryReactor* NodesService::GetNode(grpc::CallbackServerContext* context,
                                                const v1::GetNodeRequest* request,
                                                v1::Node* response) {
  const UnaryCall call(context, door_, "Nodes/GetNode");
  return call.AskWith(ParseNodeName("name", request->name()), [&](const std::string& name) {
    core_.GetNode(name, WithNode(call, response));
  });
}

grpc::ServerUnaryReactor* NodesService::CordonNode(grpc::CallbackServerContext* context,
                                                   const v1::CordonNodeRequest* request,
                                                   v1::Node* response) {
  const UnaryCall call(context, door_, "Nodes/CordonNode");
  return Mark(core_, call, request->name(), NodeMarking::kCordon, response);
}

grpc::ServerUnaryReactor* NodesService::DrainNode(grpc::CallbackServerContext* context,
                                                  const v1::DrainNodeRequest* request,
                                                  v1::Node* response) {
  const UnaryCall call(context, door_, "Nodes/DrainNode");
  return Mark(core_, call, request->name(), NodeMarking::kDrain, response);
}

grpc::ServerUnaryReactor* NodesService::UncordonNode(grpc::CallbackServerContext* context,
                                                     const v1::UncordonNodeRequest* request,
                                                     v1::Node* response) {
  const UnaryCall call(context, door_, "Nodes/UncordonNode");
  return Mark(core_, call, request->name(), NodeMarking::kUncordon, response);
}

grpc::ServerUnaryReactor* NodesService::DeleteNode(grpc::CallbackServerContext* context,
                                                   const v1::DeleteNodeRequest* request,
                                                   google::protobuf::Empty*) {
  const UnaryCall call(context, door_, "Nodes/DeleteNode");
  return call.AskWith(ParseNodeName("name", request->name()), [&](const std::string& name) {
    call.visit().About(kPrefix + name);
    core_.DeleteNode(name, [call](const absl::Status& status) { call.Finish(status); });
  });
}

grpc::ServerUnaryReactor* NodesService::ProbeLink(grpc::CallbackServerContext* context,
                                                  const v1::ProbeLinkRequest* request,
                                                  v1::ProbeLinkResponse* response) {
  const UnaryCall call(context, door_, "Nodes/ProbeLink");
  return call.AskWith(ParseLink(*request), [&](const CoreRunner::LinkQuery& query) {
    call.visit().About(kPrefix + query.from + " to " + kPrefix + query.to);
    core_.ProbeLink(query, [call, response](const absl::StatusOr<v1::ProbeLinkResponse>& found) {
      if (found.ok()) *response = *found;
      call.Finish(found.status());
    });
  });
}

}  // namespace tactus::service
