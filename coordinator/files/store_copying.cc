#include "coordinator/files/store_copying.h"

#include <unistd.h>

#include <memory>
#include <utility>

namespace tactus::service {
namespace {

// Storage thread.
class Copying : public std::enable_shared_from_this<Copying> {
 public:
  Copying(const CopyOrder& order, std::function<void(const absl::Status&)> done)
      : order_(order), done_(std::move(done)) {}

  void Begin() {
    RemoveCopy(order_.path);
    absl::StatusOr<std::unique_ptr<store::StoreCopy>> copy = order_.store.BeginCopy(order_.path);
    if (!copy.ok()) return done_(copy.status());
    copy_ = *std::move(copy);
    Continue();
  }

 private:
  void Continue() {
    order_.storage.Post([self = shared_from_this()] { self->Step(); });
  }

  void Step() {
    if (order_.cancelled()) return End(absl::CancelledError("copy: the caller left"));
    const absl::StatusOr<bool> whole = copy_->Step();
    if (!whole.ok()) return End(whole.status());
    *whole ? End(absl::OkStatus()) : Continue();
  }

  void End(const absl::Status& status) {
    copy_.reset();
    done_(status);
  }

  const CopyOrder order_;
  const std::function<void(const absl::Status&)> done_;
  std::unique_ptr<store::StoreCopy> copy_;
};

}  // namespace

void CopyStore(const CopyOrder& order, std::function<void(const absl::Status&)> done) {
  order.storage.Post(
      [copying = std::make_shared<Copying>(order, std::move(done))] { copying->Begin(); });
}

// The last two are of a copy that was opened as a database.
void RemoveCopy(const std::string& path) {
  for (const char* suffix : {"", ".partial", "-wal", "-shm"}) ::unlink((path + suffix).c_str());
}

}  // namespace tactus::service
