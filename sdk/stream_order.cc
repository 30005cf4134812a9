#include "sdk/stream_order.h"

#include <string>
#include <utility>

namespace tactus::sdk {

absl::StatusOr<std::unique_ptr<StreamOrder>> StreamOrder::Open(int device, cuda::Stream engine) {
  if (const std::string reason = cuda::UseDevice(device); !reason.empty()) {
    return absl::InternalError(reason);
  }
  cuda::OpenedEvent opened = cuda::OpenEvent();
  if (opened.event == nullptr) return absl::InternalError(opened.reason);
  return std::unique_ptr<StreamOrder>(new StreamOrder(device, engine, std::move(opened.event)));
}

absl::Status StreamOrder::Put(cuda::Stream behind, cuda::Stream first) {
  std::string reason = cuda::UseDevice(device_);
  if (reason.empty()) reason = cuda::Record(event_.get(), first);
  if (reason.empty()) reason = cuda::WaitFor(behind, event_.get());
  return reason.empty() ? absl::OkStatus() : absl::InternalError(reason);
}

}  // namespace tactus::sdk
