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

// What a client or agent may send.
constexpr int kReceiveBytesMax = 4 << 20;
// Calls of one connection at once; more wait at the client.
constexpr int kStreamsMax = 1024;
// To shake hands in: whoever connects and says nothing is cut off then.
constexpr int kHandshakeTimeoutMs = 10'000;
// Of reflection and channelz alone, each call of which has a thread while it lasts.
constexpr int kThreadsMax = 32;

}  // namespace

void SetLimits(grpc::ServerBuilder& builder, std::uint64_t bytes) {
  grpc::ResourceQuota quota("api");
  quota.Resize(bytes);
  quota.SetMaxThreads(kThreadsMax);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.SetMaxReceiveMessageSize(kReceiveBytesMax);
  builder.SetMaxSendMessageSize(kSendBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Only reflection and channelz use the synchronous threads.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

Connections::Limits LimitsOf(const ServerOptions& options) {
  return {.of_host = options.bounds.connections_per_host, .all = OpenFilesShare()};
}

// The tokens are with the other files that coordinators of one store share: what one made is good
// at the next that leads.
absl::StatusOr<std::unique_ptr<access::Enrolment>> OpenEnrolment(const ServerOptions& options) {
  if (options.authority_folder.empty()) return nullptr;
  return access::Enrolment::Open({.authority_folder = options.authority_folder,
                                  .tls_dir = options.security.tls_dir,
                                  .tokens_file = options.files_folder() + "/tokens",
                                  .life = options.certificate_life / Seconds(1)});
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const ServerOptions& options) {
  if (options.security.tls_dir.empty()) return grpc::InsecureServerCredentials();
  return identity::MakeServerCredentials(options.security.tls_dir,
                                         options.authority_folder.empty()
                                             ? identity::Strangers::kMayNot
                                             : identity::Strangers::kMayConnect);
}

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
