#include "coordinator/service/calls.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "runtime/status.h"

namespace tactus::service {

UnaryCall::UnaryCall(grpc::CallbackServerContext* context, metrics::CoordinatorMetrics& metrics,
                     const char* method)
    : context_(context), reactor_(context->DefaultReactor()), metrics_(&metrics), method_(method) {}

bool UnaryCall::Admit() const {
  if (context_->deadline() != std::chrono::system_clock::time_point::max()) return true;
  Finish(NoDeadline());
  return false;
}

void UnaryCall::Finish(const absl::Status& status) const {
  CountCall(*metrics_, method_, status);
  reactor_->Finish(runtime::ToGrpc(status));
}

absl::Status NoDeadline() {
  return runtime::InvalidFields(
      {{.field = "deadline", .description = "is missing; every call but a stream needs one"}});
}

void CountCall(metrics::CoordinatorMetrics& metrics, const char* method,
               const absl::Status& status) {
  metrics.CountCall(method, absl::StatusCodeToString(status.code()));
}

absl::StatusOr<int> PageSize(int asked, const PageSizes& sizes) {
  if (asked < 0) {
    return runtime::InvalidFields(
        {{.field = "page_size",
          .description = "found " + std::to_string(asked) + ", allowed is 0 (default) or more"}});
  }
  return asked == 0 ? sizes.standard : std::min(asked, sizes.max);
}

}  // namespace tactus::service
