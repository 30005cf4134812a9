#include "coordinator/service/standby.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "coordinator/service/intake.h"
#include "coordinator/service/serving.h"
#include "runtime/control_thread.h"
#include "runtime/listener.h"
#include "runtime/process.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr auto kGrace = std::chrono::milliseconds(100);

// Ends a call with the status that it was made with.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// Any call to any method.
class Refusing final : public grpc::CallbackGenericService {
 public:
  Refusing() { Set(""); }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Refusal(*status_.load());  // deletes itself: it is gRPC's until the call is over
  }

  // Any thread.
  void Set(const std::string& leader) {
    const std::string who = leader.empty() ? "nobody leads yet" : leader + " leads";
    const absl::Status refused =
        runtime::WithReason(absl::UnavailableError("coordinator: stands by; " + who),
                            {.reason = "NOT_LEADING", .metadata = {{"leader", leader}}});
    status_.store(std::make_shared<const grpc::Status>(runtime::ToGrpc(refused)));
  }

 private:
  // Shared with the calls that are just being refused.
  std::atomic<std::shared_ptr<const grpc::Status>> status_;
};

class StandbyImpl final : public Standby {
 public:
  StandbyImpl(runtime::LockFile lock, std::unique_ptr<access::Enrolment> enrolment,
              std::shared_ptr<grpc::ServerCredentials> credentials,
              const Connections::Limits& limits)
      : lock_(std::move(lock)),
        enrolment_(std::move(enrolment)),
        credentials_(std::move(credentials)),
        intake_(limits, nullptr) {}

  ~StandbyImpl() override {
    if (listener_ != nullptr) door_.RunAndWait([this] { listener_->Stop(); });
    door_.Stop();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + kGrace);
      server_->Wait();
    }
  }

  absl::Status Serve(const ServerOptions& options);

  const std::string& address() const override { return listener_->address(); }
  void SetLeader(const std::string& address) override { refusing_.Set(address); }

 private:
  const runtime::LockFile lock_;
  const std::unique_ptr<access::Enrolment> enrolment_;  // keeps the own certificate; null: nobody
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  runtime::ControlThread door_;
  Refusing refusing_;
  Intake intake_;  // there are no metrics and no audit log of who does not lead: the log has it
  std::unique_ptr<runtime::Listener> listener_;  // null: not yet, as the next two
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

absl::Status StandbyImpl::Serve(const ServerOptions& options) {
  auto listener = OpenListener(door_, options);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetLimits(builder, options.api_bytes);
  connections_ = TakeConnections(builder, credentials_);
  builder.RegisterCallbackGenericService(&refusing_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("listen: the server cannot be started");
  SetServing(*server_, false);
  door_.RunAndWait([this] {
    listener_->Start([this](boost::asio::ip::tcp::socket connection) {
      intake_.Take(std::move(connection), *connections_);
    });
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Standby>> Standby::Open(const ServerOptions& options) {
  absl::Status status = runtime::MakeWritableFolder(options.state_dir);
  if (!status.ok()) return status;
  absl::StatusOr<runtime::LockFile> lock = runtime::LockFile::Acquire(options.state_dir + "/lock");
  if (!lock.ok()) return lock.status();
  // As a Server does: first what may make the certificate that the credentials are read of.
  auto enrolment = OpenEnrolment(options);
  if (!enrolment.ok()) return absl::InvalidArgumentError(std::string(enrolment.status().message()));
  auto credentials = CredentialsOf(options);
  if (!credentials.ok()) {
    return absl::InvalidArgumentError(std::string(credentials.status().message()));
  }
  auto standby = std::make_unique<StandbyImpl>(*std::move(lock), *std::move(enrolment),
                                               *std::move(credentials), LimitsOf(options));
  status = standby->Serve(options);
  if (!status.ok()) return status;
  return standby;
}

}  // namespace tactus::service
