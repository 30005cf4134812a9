#include "coordinator/service/calls.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "runtime/status.h"

namespace tactus::service {

UnaryCall::UnaryCall(grpc::CallbackServerContext* context, const Door& door, const char* method)
    : context_(context), reactor_(context->DefaultReactor()), visit_(door, context, method) {}

bool UnaryCall::Admit() const {
  const bool bounded = context_->deadline() != std::chrono::system_clock::time_point::max();
  if (bounded && visit_.admitted().ok()) return true;
  Finish(visit_.admitted().ok() ? NoDeadline() : visit_.admitted());
  return false;
}

void UnaryCall::Finish(const absl::Status& status) const {
  visit_.Leave(status);
  reactor_->Finish(runtime::ToGrpc(status));
}

absl::Status NoDeadline() {
  return runtime::InvalidFields(
      {{.field = "deadline", .description = "is missing; every call but a stream needs one"}});
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
