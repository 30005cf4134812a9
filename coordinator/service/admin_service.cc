#include "coordinator/service/admin_service.h"

#include "coordinator/service/backup_call.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/integrity_call.h"
#include "coordinator/service/nodes_service.h"
#include "runtime/logging.h"
#include "runtime/status.h"

namespace tactus::service {

absl::Status AdminService::UnderWay() {
  return runtime::WithReason(
      absl::UnavailableError("admin: another copy of the database is being made or looked through"),
      {.reason = "BACKUP_UNDER_WAY"});
}

grpc::ServerWriteReactor<v1::BackupChunk>* AdminService::Backup(
    grpc::CallbackServerContext* context, const v1::BackupRequest*) {
  return StartBackup(around_, context);
}

grpc::ServerUnaryReactor* AdminService::CheckIntegrity(grpc::CallbackServerContext* context,
                                                       const v1::CheckIntegrityRequest*,
                                                       v1::CheckIntegrityResponse* response) {
  const UnaryCall call(context, around_.door, "Admin/CheckIntegrity");
  if (!call.Admit()) return call.reactor();
  StartIntegrityCheck(around_, context, call, response);
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::SetLogLevel(grpc::CallbackServerContext* context,
                                                    const v1::SetLogLevelRequest* request,
                                                    v1::SetLogLevelResponse*) {
  const UnaryCall call(context, around_.door, "Admin/SetLogLevel");
  if (!call.Admit()) return call.reactor();
  if (!request->node().empty()) call.visit().About("nodes/" + request->node());
  absl::Status status = runtime::CheckLogLevel(request->level());
  if (status.ok() && !request->node().empty()) {
    const absl::StatusOr<std::string> node = ParseNodeName("node", request->node());
    if (node.ok()) {
      around_.core.SetAgentLogLevel(*node, request->level(),
                                    [call, node = *node, level = request->level(),
                                     peer = context->peer()](const absl::Status& told) {
                                      if (told.ok()) {
                                        runtime::Logger("main")->info(
                                            "agent log level changed node={} log_level={} by={}",
                                            node, level, runtime::Quoted(peer));
                                      }
                                      call.Finish(told);
                                    });
      return call.reactor();
    }
    status = node.status();
  }
  if (status.ok()) {
    runtime::SetLogLevel(request->level(), [&] {
      runtime::Logger("main")->info("log level changed log_level={} by={}", request->level(),
                                    runtime::Quoted(context->peer()));
    });
  }
  call.Finish(status);
  return call.reactor();
}

}  // namespace tactus::service
