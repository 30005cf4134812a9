// What a coordinator's gRPC server has whether it leads or stands by: its services' names for the
// health checks, its bounds, and connections that are handed to it.

#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/access/enrolment.h"
#include "coordinator/service/connections.h"
#include "coordinator/service/server.h"
#include "runtime/control_thread.h"
#include "runtime/listener.h"

namespace tactus::service {

// How long a peer that does not answer is waited for, in milliseconds.
inline constexpr int kKeepaliveTimeoutMs = 20'000;

// What a client or agent may be sent: a page of 10,000 rounds, or all endpoints of a group of 700
// workers.
inline constexpr int kSendBytesMax = 64 << 20;

// Bounds of whoever connects: memory, `bytes` in all; messages, streams, and the time to shake
// hands in.
void SetLimits(grpc::ServerBuilder& builder, std::uint64_t bytes);

// How many connections there may be.
Connections::Limits LimitsOf(const ServerOptions& options);

// Null: it gives no certificates. Errors: as Enrolment::Open.
absl::StatusOr<std::unique_ptr<access::Enrolment>> OpenEnrolment(const ServerOptions& options);

// Of --tls-dir, or plain. Errors: as identity::MakeServerCredentials.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const ServerOptions& options);

// What grpc.health.v1 says of all of the coordinator's services.
void SetServing(grpc::Server& server, bool serving);

// Listens as `options` say, on the thread. Errors: InvalidArgument, plain at an address that others
// can reach; of the listener, of the option.
absl::StatusOr<std::unique_ptr<runtime::Listener>> OpenListener(runtime::ControlThread& thread,
                                                                const ServerOptions& options);

// Has the server take connections that HandOver hands to the answer.
std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> TakeConnections(
    grpc::ServerBuilder& builder, const std::shared_ptr<grpc::ServerCredentials>& credentials);

void HandOver(boost::asio::ip::tcp::socket connection,
              grpc::experimental::ExternalConnectionAcceptor& acceptor);

}  // namespace tactus::service
