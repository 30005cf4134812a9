// What all services' calls have in common: deadlines, counting, pages.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/service/door.h"
#include "runtime/status.h"

namespace tactus::service {

// A unary call that is under way: finishes it once and counts it. Copies stand for the same call.
class UnaryCall {
 public:
  // `method` is "Jobs/GetJob"; static storage. `door` outlives the call.
  UnaryCall(grpc::CallbackServerContext* context, const Door& door, const char* method);

  // True when the call is for whoever makes it, and has a deadline; else it is refused and
  // finished.
  bool Admit() const;
  void Finish(const absl::Status& status) const;
  const Visit& visit() const { return visit_; }
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }

  // Asks with what the request was found to say, if the call is admitted; finishes it where either
  // is wrong. `ask` finishes it later. Returns the reactor.
  template <typename Query, typename Ask>
  grpc::ServerUnaryReactor* AskWith(absl::StatusOr<Query> query, const Ask& ask) const {
    if (!Admit()) return reactor_;
    if (query.ok()) {
      ask(*std::move(query));
    } else {
      Finish(query.status());
    }
    return reactor_;
  }

 private:
  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;  // gRPC's own, alive until Finish
  Visit visit_;
};

// What a unary call without a deadline is refused with.
absl::Status NoDeadline();

// A call that lasts: it owns itself, from Hold until gRPC is done with it, and leaves by the door
// when it is finished. Who derives from it looks whether it is admitted. Posted tasks hold shares
// of their own. `Call` is the class that derives from it.
template <typename Call, typename Reactor>
class OwnedCall : public Reactor, public std::enable_shared_from_this<Call> {
 public:
  // gRPC's share ends. A read or write that is cancelled has come back as not ok.
  void OnDone() override { const std::shared_ptr<Call> last = std::move(self_); }

 protected:
  // As UnaryCall has them.
  OwnedCall(grpc::CallbackServerContext* context, const Door& door, const char* method)
      : visit_(door, context, method) {}

  const Visit& visit() const { return visit_; }

  std::shared_ptr<Call> Hold() { return self_ = this->shared_from_this(); }

  void FinishWith(const absl::Status& status) {
    visit_.Leave(status);
    this->Finish(runtime::ToGrpc(status));
  }

 private:
  const Visit visit_;
  std::shared_ptr<Call> self_;  // gRPC's share, until OnDone
};

// The size of a page: the default for 0, at most `max`. Errors: InvalidArgument, negative.
struct PageSizes {
  int standard = 50;
  int max = 1000;
};
absl::StatusOr<int> PageSize(int asked, const PageSizes& sizes);

}  // namespace tactus::service
