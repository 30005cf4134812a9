// Blobs in a folder.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/job/records.h"
#include "runtime/arriving_file.h"

namespace tactus::service {

// A blob that is whole lies at its BlobPath and never changes; what has come of another one at
// FOLDER/partial/HASH. Blocking; everything here and its writers on one thread.
class FolderBlobs final : public BlobStore {
 public:
  explicit FolderBlobs(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<State> Find(const std::string& sha256) override;
  bool Has(const std::string& sha256) const override;
  void SetRemoved(std::function<void(const std::string& sha256)> removed) override {
    removed_ = std::move(removed);
  }
  absl::StatusOr<BlobWriter> Write(const Upload& upload) override;
  void Keep(const std::string&, Kept done) override { done(absl::OkStatus()); }
  absl::StatusOr<std::unique_ptr<BlobReader>> Read(const std::string& sha256,
                                                   std::uint64_t offset) override;
  std::size_t Sweep(const std::set<std::string>& used, job::WallTime now) override;
  std::set<std::string> Remove(const std::set<std::string>& unnamed, job::WallTime since) override;
  void SetKeepAll(bool keep_all) override { keep_all_ = keep_all; }

  // For a store whose blobs come by way of this folder:

  // Is told of each blob that a writer, or whoever else held it, lets go.
  void SetLetGo(std::function<void(const std::string& sha256)> let_go) {
    let_go_ = std::move(let_go);
  }
  // A writer that has nothing to write, of a blob that is whole elsewhere.
  BlobWriter WriterOfWhole(const Upload& upload);
  // Held: neither Sweep nor Remove removes it, as while a writer of it is there.
  void Hold(const std::string& sha256) { ++held_[sha256]; }
  void LetGo(const std::string& sha256);
  bool Holds(const std::string& sha256) const { return held_.contains(sha256); }
  // Of a blob that is whole here; nothing: it is not.
  std::optional<std::uint64_t> SizeOfWhole(const std::string& sha256) const;
  std::vector<std::string> NamesOfWhole() const;
  std::string PathOf(const std::string& sha256) const { return BlobPath(folder_, sha256); }
  // Removes one that is whole elsewhere, too: nobody is told.
  void Drop(const std::string& sha256) const;

 private:
  friend class BlobWriter;

  std::string PartialPathOf(const std::string& name) const;
  // True: the file was there, and nothing is left of this name.
  bool Unlink(const std::string& path, const std::string& name);

  const std::string folder_;
  std::function<void(const std::string& sha256)> removed_ = [](const std::string&) {};
  std::function<void(const std::string& sha256)> let_go_ = [](const std::string&) {};
  std::map<std::string, std::uint64_t> writers_;  // by the name in partial/: the one that counts
  std::uint64_t last_writer_ = 0;
  bool keep_all_ = false;
  std::map<std::string, std::size_t> held_;  // whole blobs: by how many; no zeros
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

  // Checks the blob and gives it its name; returns its hash. Errors: InvalidArgument, less than the
  // size said; DataLoss, the content has another hash and is removed; Aborted and others as Append.
  absl::StatusOr<std::string> Commit();

  // Reads a piece of the blob back, past the memory that it was written through where the system
  // takes that advice; true: there is no more of it, and all is as it came. To be called until it
  // says so, after Commit and before Keep. Errors: DataLoss, the disk has something else, which is
  // removed; as the file system has them.
  absl::StatusOr<bool> ReadBack();

 private:
  friend class FolderBlobs;
  BlobWriter(FolderBlobs& store, const BlobStore::Upload& upload)
      : store_(&store), upload_(upload) {}

  absl::Status CheckTurn() const;
  absl::Status WrongSize(const std::string& how) const;

  FolderBlobs* store_;  // null: moved from
  BlobStore::Upload upload_;
  std::string name_;  // in partial/
  std::uint64_t turn_ = 0;
  std::uint64_t position_ = 0;  // of the next byte to come
  bool complete_ = false;
  bool elsewhere_ = false;                     // and not in the folder
  std::optional<runtime::ArrivingFile> file_;  // empty: complete
  std::optional<runtime::ArrivingFile> back_;  // the blob, as it is read back
};

}  // namespace tactus::service
