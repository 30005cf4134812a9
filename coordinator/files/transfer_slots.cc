#include "coordinator/files/transfer_slots.h"

#include <chrono>
#include <string>

#include "runtime/status.h"

namespace tactus::service {
namespace {

absl::Status Full(const std::string& what, std::size_t limit, const runtime::ErrorReason& reason) {
  runtime::ErrorReason with_limit = reason;
  with_limit.metadata["limit"] = std::to_string(limit);
  return runtime::WithRetry(
      runtime::WithReason(
          absl::ResourceExhaustedError(what + ": " + std::to_string(limit) +
                                       " are under way, which is all that may; try again later"),
          with_limit),
      std::chrono::seconds(5));
}

}  // namespace

TransferSlots::Slot::~Slot() {
  if (slots_ != nullptr) slots_->Leave(transfer_);
}

absl::StatusOr<TransferSlots::Slot> TransferSlots::Take(Transfer transfer) {
  const std::size_t clients = Count(Transfer::kClientUpload);
  if (transfer == Transfer::kDownload && Count(transfer) >= limits_.downloads) {
    return Full("downloads", limits_.downloads, {.reason = "TOO_MANY_DOWNLOADS"});
  }
  if (transfer == Transfer::kClientUpload && clients >= limits_.client_uploads) {
    return Full("clients' uploads", limits_.client_uploads, {.reason = "TOO_MANY_UPLOADS"});
  }
  if (transfer != Transfer::kDownload &&
      clients + Count(Transfer::kAgentUpload) >= limits_.uploads) {
    return Full("uploads", limits_.uploads, {.reason = "TOO_MANY_UPLOADS"});
  }
  Enter(transfer);
  return Slot(*this, transfer);
}

}  // namespace tactus::service
