#include "coordinator/service/serving.h"

#include <grpcpp/health_check_service_interface.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "identity/credentials.h"

namespace tactus::service {
namespace {

constexpr const char* kServices[] = {"",
                                     "tactus.v1.Jobs",
                                     "tactus.v1.Nodes",
                                     "tactus.v1.Artifacts",
                                     "tactus.v1.Admin",
                                     "tactus.v1.Enrolment",
                                     "tactus.agent.v1.AgentSession"};

}  // namespace

void SetServing(grpc::Server& server, bool serving) {
  for (const char* service : kServices) {
    server.GetHealthCheckService()->SetServingStatus(service, serving);
  }
}

absl::StatusOr<std::unique_ptr<runtime::Listener>> OpenListener(runtime::ControlThread& thread,
                                                                const ServerOptions& options) {
  auto listener = runtime::Listener::Open(thread, options.listen);
  if (!listener.ok()) {
    return absl::Status(listener.status().code(),
                        "listen: " + std::string(listener.status().message()));
  }
  // Whatever the name was that was given.
  const bool plain = options.security.tls_dir.empty() && !options.security.insecure;
  if (plain && !(*listener)->loopback()) return identity::Exposed("listen", options.listen);
  return listener;
}

std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> TakeConnections(
    grpc::ServerBuilder& builder, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
}

void HandOver(boost::asio::ip::tcp::socket connection,
              grpc::experimental::ExternalConnectionAcceptor& acceptor) {
  boost::system::error_code ignored;
  connection.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  setsockopt(connection.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kKeepaliveTimeoutMs,
             sizeof kKeepaliveTimeoutMs);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters taken;
  taken.fd = connection.release();
  acceptor.HandleNewConnection(&taken);
}

}  // namespace tactus::service
