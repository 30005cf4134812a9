#include "agent/daemon/coordinator_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "runtime/status.h"

namespace tactus::agent {

using tactus::agent::v1::FromAgent;
using tactus::agent::v1::ToAgent;

// gRPC calls On...(); they only post. All else runs on the control thread.
class CoordinatorStream::Reactor final : public grpc::ClientBidiReactor<FromAgent, ToAgent> {
 public:
  // Handlers already guarded by the stream's lifetime.
  Reactor(runtime::ControlThread& control, Handlers handlers)
      : control_(control), handlers_(std::move(handlers)) {}

  void Start(Stub& stub, const std::shared_ptr<Reactor>& self) {
    self_ = self;
    stub.async()->Session(&context_, this);
    // Reads and writes are started outside of gRPC's callbacks: the call must not end in between.
    AddHold();
    StartCall();
    StartRead(&received_);
  }

  void Write(FromAgent message) {
    if (!held_) return;
    sent_ = std::move(message);
    StartWrite(&sent_);
  }

  void Cancel() {
    context_.TryCancel();
    Release();
  }

  void OnReadDone(bool ok) override {
    control_.Post([this, self = self_, ok] {
      if (!ok) return Release();
      handlers_.message(received_);
      if (held_) StartRead(&received_);
    });
  }

  void OnWriteDone(bool ok) override {
    if (ok) control_.Post([this, self = self_] { handlers_.written(); });
  }

  void OnDone(const grpc::Status& status) override {
    control_.Post([this, self = self_, status = runtime::FromGrpc(status)] {
      self_.reset();
      handlers_.ended(status);
    });
  }

 private:
  // No operation is started from here on, so the call may be over.
  void Release() {
    if (std::exchange(held_, false)) RemoveHold();
  }

  runtime::ControlThread& control_;
  const Handlers handlers_;
  grpc::ClientContext context_;
  FromAgent sent_;
  ToAgent received_;
  bool held_ = true;
  std::shared_ptr<Reactor> self_;  // the call's own share, until it is over
};

CoordinatorStream::CoordinatorStream(runtime::ControlThread& control, Stub& stub, Handlers handlers)
    : reactor_(std::make_shared<Reactor>(
          control, Handlers{.message = lifetime_.Guard(std::move(handlers.message)),
                            .written = lifetime_.Guard(std::move(handlers.written)),
                            .ended = lifetime_.Guard(std::move(handlers.ended))})) {
  reactor_->Start(stub, reactor_);
}

CoordinatorStream::~CoordinatorStream() { Cancel(); }

void CoordinatorStream::Write(FromAgent message) { reactor_->Write(std::move(message)); }

void CoordinatorStream::Cancel() { reactor_->Cancel(); }

}  // namespace tactus::agent
