// Who did what: a line for each call that changes something and for each that was refused.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "coordinator/access/audit_chain.h"
#include "threads/mutex.h"

namespace tactus::access {

struct AuditOptions {
  std::string folder{};                               // made, 0700, if it is not there
  std::size_t lines_max = 4096;                       // of changes, that wait or are promised
  std::size_t refusals_max = 1024;                    // that wait
  std::uint64_t bytes_max = std::uint64_t{64} << 20;  // of a file; then another is begun
};

// Appends to the newest file in its folder, on a thread of its own, and syncs it. What waits is
// bounded: a call that would change something takes a Slot first, and is refused where there is
// none, as while the disk is full; so no change goes without its line, but for those that a crash
// of the coordinator takes from the queue. Refusals beyond their bound are counted, and the count
// becomes a line. From any thread.
class AuditLog {
 public:
  // Room for a line. Given back where it is not used.
  class Slot {
   public:
    explicit Slot(AuditLog& log) : log_(&log) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot();

   private:
    friend class AuditLog;
    AuditLog* log_;  // null: used
  };

  // Goes on where the folder's newest file ends. A last line that a crash left half written is cut
  // off, and said in the log. One that is whole and wrong stays, and a new chain begins in a file
  // of its own. Errors: of the file system.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditOptions& options);
  ~AuditLog();  // Stop()
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Null: there is no room. The log outlives it.
  std::unique_ptr<Slot> Reserve();
  void Write(std::unique_ptr<Slot> slot, AuditEntry entry);
  void WriteRefusal(AuditEntry entry);

  // Writes what waits, once, and ends the thread.
  void Stop();

  // Bytes that a half-written last line had, which were cut off when this was opened.
  std::uint64_t cut_bytes() const { return cut_bytes_; }

 private:
  explicit AuditLog(const AuditOptions& options) : options_(options), end_(EmptyChain()) {}
  absl::Status Continue();
  absl::Status BeginFile();
  void Run();
  absl::Status Append(const std::vector<AuditEntry>& entries);
  void GiveBack();
  struct Batch {
    std::vector<AuditEntry> entries{};
    std::size_t changes = 0;  // of these, the first so many
  };
  Batch Take();
  bool AwaitWork();
  void Pause();

  const AuditOptions options_;
  std::uint64_t cut_bytes_ = 0;
  // Of the thread:
  ChainEnd end_;
  Descriptor file_;
  std::uint64_t size_ = 0;  // of the file, up to its last whole line
  bool failing_ = false;    // and it is said

  mutable threads::Mutex mutex_;
  threads::Condition changed_;
  std::deque<AuditEntry> changes_ ABSL_GUARDED_BY(mutex_);
  std::deque<AuditEntry> refusals_ ABSL_GUARDED_BY(mutex_);
  std::size_t promised_ ABSL_GUARDED_BY(mutex_) = 0;  // slots and changes that are not written
  std::uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tactus::access
