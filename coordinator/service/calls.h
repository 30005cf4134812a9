// What all services' calls have in common: deadlines, counting, pages.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/status.h"

namespace tactus::service {

// A unary call that is under way: finishes it once and counts it. Copies stand for the same call.
class UnaryCall {
 public:
  // `method` is "Jobs/GetJob"; static storage. `metrics` outlives the call.
  UnaryCall(grpc::CallbackServerContext* context, metrics::CoordinatorMetrics& metrics,
            const char* method);

  // True when the call has a deadline; else it is refused and finished.
  bool Admit() const;
  void Finish(const absl::Status& status) const;
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
  metrics::CoordinatorMetrics* metrics_;
  const char* method_;
};

// What a unary call without a deadline is refused with.
absl::Status NoDeadline();

// Counts an answered call by its method and code.
void CountCall(metrics::CoordinatorMetrics& metrics, const char* method,
               const absl::Status& status);

// A call that lasts: it owns itself, from Hold until gRPC is done with it, and is counted when it
// is finished. Posted tasks hold shares of their own. `Call` is the class that derives from it.
template <typename Call, typename Reactor>
class OwnedCall : public Reactor, public std::enable_shared_from_this<Call> {
 public:
  // gRPC's share ends. A read or write that is cancelled has come back as not ok.
  void OnDone() override { const std::shared_ptr<Call> last = std::move(self_); }

 protected:
  // As UnaryCall has them.
  OwnedCall(metrics::CoordinatorMetrics& metrics, const char* method)
      : metrics_(metrics), method_(method) {}

  std::shared_ptr<Call> Hold() { return self_ = this->shared_from_this(); }

  void FinishWith(const absl::Status& status) {
    CountCall(metrics_, method_, status);
    this->Finish(runtime::ToGrpc(status));
  }

 private:
  metrics::CoordinatorMetrics& metrics_;
  const char* const method_;
  std::shared_ptr<Call> self_;  // gRPC's share, until OnDone
};

// The size of a page: the default for 0, at most `max`. Errors: InvalidArgument, negative.
struct PageSizes {
  int standard = 50;
  int max = 1000;
};
absl::StatusOr<int> PageSize(int asked, const PageSizes& sizes);

}  // namespace tactus::service
