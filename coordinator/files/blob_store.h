// Files known by the SHA-256 of their content: what jobs read and what they made.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/artifacts.h"
#include "coordinator/job/records.h"
#include "runtime/arriving_file.h"

namespace tactus::service {

class BlobWriter;

// FOLDER/ab/HASH, where HASH begins with "ab".
std::string BlobPath(const std::string& folder, const std::string& sha256);

// A blob that is whole lies at its BlobPath and never changes; what has come of another one at
// FOLDER/partial/HASH. Blocking; everything here and its writers on one thread.
class BlobStore {
 public:
  // Writers at once.
  static constexpr std::size_t kWritersMax = 256;
  // What nobody names, or goes on with, is kept for so long.
  static constexpr Duration kUnusedAge = std::chrono::hours(24);

  explicit BlobStore(std::string folder) : folder_(std::move(folder)) {}

  // What of a blob is there; nothing is 0 bytes.
  struct State {
    std::uint64_t received_bytes = 0;
    bool complete = false;
  };
  // A blob that is complete counts as used from now on, for kUnusedAge. Errors: InvalidArgument,
  // no hash; as the file system has them.
  absl::StatusOr<State> Find(const std::string& sha256) const;

  // Whether it is there, whole or in part; it does not count as used for that. Requires: a hash.
  bool Has(const std::string& sha256) const;

  // Is told of each blob of which nothing is left; of some that are none, too. Before the first
  // Write; it outlives the store.
  void SetRemoved(std::function<void(const std::string& sha256)> removed) {
    removed_ = std::move(removed);
  }

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
  absl::StatusOr<BlobWriter> Write(const Upload& upload);

  // From `offset` on. Errors: InvalidArgument, no hash; NotFound, not there or not complete;
  // OutOfRange, `offset` is above its size; as the file system has them.
  absl::StatusOr<ArtifactReader> Read(const std::string& sha256, std::uint64_t offset) const;

  // Removes blobs that are not in `used` and those that came in part, where nothing was done with
  // them for kUnusedAge before `now`, the time of day. Returns how many.
  std::size_t Sweep(const std::set<std::string>& used, job::WallTime now);

  // Removes these blobs, which nobody named at `since`, the time of day. Returns those that stay
  // for now: a writer holds them, or they were used after `since`.
  std::set<std::string> Remove(const std::set<std::string>& unnamed, job::WallTime since);

  // While it is on, neither Sweep nor Remove removes anything: what the jobs name at one moment can
  // be read, though they name something else at the next.
  void SetKeepAll(bool keep_all) { keep_all_ = keep_all; }

 private:
  friend class BlobWriter;

  std::string PathOf(const std::string& sha256) const { return BlobPath(folder_, sha256); }
  std::string PartialPathOf(const std::string& name) const;
  void Hold(const std::string& sha256) { ++held_[sha256]; }
  void LetGo(const std::string& sha256);
  // True: the file was there, and nothing is left of this name.
  bool Unlink(const std::string& path, const std::string& name);

  const std::string folder_;
  std::function<void(const std::string& sha256)> removed_ = [](const std::string&) {};
  std::map<std::string, std::uint64_t> writers_;  // by the name in partial/: the one that counts
  std::uint64_t last_writer_ = 0;
  bool keep_all_ = false;
  std::map<std::string, std::size_t> held_;  // whole blobs: by how many writers; no zeros
};

// One attempt to bring a blob. Outlived by its store. A blob that is whole is not removed while its
// writer is there, and counts as used when that goes: until then its name is to be durable.
class BlobWriter {
 public:
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;
  ~BlobWriter();  // what came stays for the next attempt, if the blob has a name

  // The blob is there already: there is nothing to write.
  bool complete() const { return complete_; }

  // Reads again a piece of what came before; true: there is no more of it. To be called until it
  // says so, before the first Append.
  absl::StatusOr<bool> CatchUp();

  // The next bytes from the offset on; those that are there already are left out.
  // Errors: InvalidArgument, more than the size said; Aborted, another writer took over; as the
  // file system has them.
  absl::Status Append(std::string_view bytes);

  // Checks and keeps the blob; returns its hash. Errors: InvalidArgument, less than the size said;
  // DataLoss, the content has another hash and is removed; Aborted and others as Append.
  absl::StatusOr<std::string> Commit();

  // Reads a piece of the blob back, past the memory that it was written through where the system
  // takes that advice; true: there is no more of it, and all is as it came. To be called until it
  // says so, after Commit. Errors: DataLoss, the disk has something else, which is removed; as the
  // file system has them.
  absl::StatusOr<bool> ReadBack();

 private:
  friend class BlobStore;
  BlobWriter(BlobStore& store, const BlobStore::Upload& upload) : store_(&store), upload_(upload) {}

  absl::Status CheckTurn() const;
  absl::Status WrongSize(const std::string& how) const;

  BlobStore* store_;  // null: moved from
  BlobStore::Upload upload_;
  std::string name_;  // in partial/
  std::uint64_t turn_ = 0;
  std::uint64_t position_ = 0;  // of the next byte to come
  bool complete_ = false;
  std::optional<runtime::ArrivingFile> file_;  // empty: complete
  std::optional<runtime::ArrivingFile> back_;  // the blob, as it is read back
};

}  // namespace tactus::service
