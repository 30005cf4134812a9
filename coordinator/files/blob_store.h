// Files known by the SHA-256 of their content: what jobs read and what they made.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/blob_reader.h"
#include "coordinator/job/records.h"
#include "runtime/control_thread.h"

namespace tactus::metrics {
class CoordinatorMetrics;
}  // namespace tactus::metrics

namespace tactus::service {

class BlobWriter;

// FOLDER/ab/HASH, where HASH begins with "ab".
std::string BlobPath(const std::string& folder, const std::string& sha256);

// A blob that is whole never changes. What comes of one comes to a folder of this machine, from
// where it may go elsewhere once it is whole. But for what says otherwise, everything here and its
// writers on one thread, the files', which waits for that folder's disk alone.
class BlobStore {
 public:
  // Writers at once.
  static constexpr std::size_t kWritersMax = 256;
  // What nobody names, or goes on with, is kept for so long.
  static constexpr Duration kUnusedAge = std::chrono::hours(24);

  virtual ~BlobStore() = default;

  // Where work goes on beside the files' thread, which outlives Join: before anything else.
  struct Surroundings {
    runtime::ControlThread& files;
    // False: another coordinator may lead by now, and nothing is removed; any thread.
    std::function<bool()> leads;
    // Counts what is asked of others; none: nobody does. It outlives Join.
    metrics::CoordinatorMetrics* metrics = nullptr;
  };
  virtual void Start(const Surroundings&) {}
  // What is waited for, now and later, ends with an error within a second. Any thread.
  virtual void Stop() {}
  // Nothing goes on beside the files' thread any more. After Stop and the last call, from another
  // thread than the files', before that ends.
  virtual void Join() {}

  // What of a blob is there; nothing is 0 bytes.
  struct State {
    std::uint64_t received_bytes = 0;
    bool complete = false;
    // It is complete on this machine alone, and on its way to where it is kept: Keep() waits for
    // that.
    bool on_its_way = false;
  };
  // A blob that is complete counts as used from now on, for kUnusedAge. Errors: InvalidArgument,
  // no hash; as the file system has them.
  virtual absl::StatusOr<State> Find(const std::string& sha256) = 0;

  // Whether it is there, whole or in part; it does not count as used for that. Requires: a hash.
  virtual bool Has(const std::string& sha256) const = 0;

  // Is told of each blob of which nothing is left; of some that are none, too. Before the first
  // Write; it outlives the store.
  virtual void SetRemoved(std::function<void(const std::string& sha256)> removed) = 0;

  // Takes a blob from `offset` on. A second writer of the same blob takes the place of the first,
  // whose caller has most likely gone, and goes on where that one came to. An empty `sha256` takes
  // a file whose hash is not known yet, from 0 on and without a second attempt.
  // Errors: InvalidArgument, no hash or more than runtime::kBlobBytesMax; OutOfRange, `offset` is
  // above what has come; ResourceExhausted, kWritersMax write; as the file system has them.
  struct Upload {
    std::string sha256{};
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;
  };
  virtual absl::StatusOr<BlobWriter> Write(const Upload& upload) = 0;

  // Brings what a writer committed to where it is to stay, and says when it is there: it outlives
  // this machine, as far as the store does. `done` is called once, on the files' thread, at once or
  // later. Errors: Unavailable, it is not there now, and may be tried again, also with another
  // writer; DataLoss, what was committed is damaged.
  using Kept = std::function<void(const absl::Status&)>;
  virtual void Keep(const std::string& sha256, Kept done) = 0;

  // From `offset` on. Errors: InvalidArgument, no hash; NotFound, not there or not complete;
  // OutOfRange, `offset` is above its size; as the file system has them.
  virtual absl::StatusOr<std::unique_ptr<BlobReader>> Read(const std::string& sha256,
                                                           std::uint64_t offset) = 0;

  // Removes blobs that are not in `used` and those that came in part, where nothing was done with
  // them for kUnusedAge before `now`, the time of day. Returns how many.
  virtual std::size_t Sweep(const std::set<std::string>& used, job::WallTime now) = 0;

  // Removes these blobs, which nobody named at `since`, the time of day. Returns those that stay
  // for now: a writer holds them, or they were used after `since`.
  virtual std::set<std::string> Remove(const std::set<std::string>& unnamed,
                                       job::WallTime since) = 0;

  // While it is on, neither Sweep nor Remove removes anything: what the jobs name at one moment can
  // be read, though they name something else at the next.
  virtual void SetKeepAll(bool keep_all) = 0;

  // Looks again at what is there, where others may have changed it; Find and Sweep know it from
  // then on. `done` as of Keep. Errors: Unavailable.
  virtual void Refresh(Kept done) { done(absl::OkStatus()); }

  // Gives all of a blob to `take`, piece by piece, of those that do not lie in the folder; empty:
  // all do. Blocking, any thread. Errors: NotFound; `take`'s; Unavailable.
  using Fetch = std::function<absl::Status(
      const std::string& sha256, const std::function<absl::Status(std::string_view)>& take)>;
  virtual Fetch Source() const { return nullptr; }
};

}  // namespace tactus::service
