// Who did what: a line for each call that changes something and for each that was refused.

#pragma once

#include <chrono>
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
#include "base/time.h"
#include "coordinator/access/audit_chain.h"
#include "threads/mutex.h"

namespace tactus::access {

struct AuditOptions {
  std::string folder{};                               // made, 0700, if it is not there
  std::size_t lines_max = 4096;                       // of changes, that wait or are promised
  std::size_t refusals_max = 1024;                    // that wait, or come at once
  double refusals_per_second = 10;                    // beyond those; the others are counted
  std::uint64_t bytes_max = std::uint64_t{64} << 20;  // of a file; then another is begun
  // Of all files, of which the oldest go; a file is a quarter of it at most.
  std::uint64_t kept_bytes_max = std::uint64_t{1} << 30;
};

// Appends to the newest file in its folder, on a thread of its own, and syncs it. What waits is
// bounded: a call that would change something takes a Slot first, and is refused where there is
// none, as while the disk is full; so no change goes without its line, but for those that a crash
// of the coordinator takes from the queue. Refusals beyond their bound are counted, and the count
// becomes a line, one a second at most: whoever is refused thousands of times neither fills the
// disk nor takes the place of what others did. From any thread.
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
  explicit AuditLog(const AuditOptions& options);
  absl::Status Continue();
  absl::Status BeginFile();
  void Run();
  absl::Status Append(std::vector<AuditEntry> entries);
  // Files that are too many, and up to where they reach.
  struct Surplus {
    std::vector<std::string> files{};
    ChainEnd end{};
  };
  Surplus FindSurplus() const;
  std::uint64_t FileBytesMax() const;
  bool MayWriteRefusal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LeftOutIsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  std::chrono::steady_clock::time_point say_left_out_ ABSL_GUARDED_BY(mutex_){};  // not before
  double allowance_ ABSL_GUARDED_BY(mutex_);                                      // of refusals
  Instant allowed_ ABSL_GUARDED_BY(mutex_);  // it was looked at
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tactus::access
