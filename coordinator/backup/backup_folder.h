// The folder of a coordinator's backups.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/job/records.h"

namespace tactus::backup {

// Files of a backup beside those that a state folder has. The first has the hash of every other
// file, as `sha256sum -c` reads it, the database's first; the second is there when files of jobs
// could not be read, and has a line for each.
inline constexpr char kHashesName[] = "SHA256SUMS";
inline constexpr char kMissingName[] = "MISSING";

// A backup is the folder tactus-20261123T014500Z, named by its time in UTC, and by itself what a
// state folder needs: the database and every blob that its jobs name. A blob that the backup before
// has is the same file there (a hard link): it takes its room once, and goes with the last backup
// that has it. A backup is written as tactus-...Z.partial and gets its name when all of it is
// durable. Blocking; one thread.
class BackupFolder {
 public:
  // keep: how many backups there are at most; >= 1.
  BackupFolder(std::string path, std::size_t keep) : path_(std::move(path)), keep_(keep) {}

  // Of the newest backup, and of the newest that lacks nothing; nothing: there is none.
  std::optional<job::WallTime> NewestTime() const;
  std::optional<job::WallTime> NewestCompleteTime() const;

  // What a process that ended was writing or removing.
  void RemoveLeftovers() const;

  struct Order {
    job::WallTime now = 0;              // time of day; the backup's name
    std::string state_folder{};         // where the blobs are, and a copy of the database
    service::BlobStore::Fetch fetch{};  // of those that are not there; empty: all are
    std::function<void()> copy_read{};  // called when that copy is not needed any more
    std::function<bool()> cancelled{};  // asked now and then
  };
  struct Report {
    std::string name{};
    std::size_t files_kept = 0;    // blobs that the backup before has as well
    std::size_t files_copied = 0;  // those that it had not
    std::uint64_t bytes_copied = 0;
    std::vector<std::string> missing{};  // blobs that could not be read, and why
    absl::Status removed{};              // of backups beyond `keep`
  };
  // Writes a backup; then removes the oldest beyond `keep`. Each blob that is copied is held to its
  // hash; one that is damaged or cannot be read is missing from the backup, which has all
  // others. Requires: no blob that the copy's jobs name is removed meanwhile.
  // Errors: NotFound, the folder is not there, and is not made: a disk that is not mounted would
  // have its backups on the disk below it; AlreadyExists, a backup of this second; Cancelled; what
  // reading the copy or writing fails with. Nothing of the backup is there then.
  absl::StatusOr<Report> Write(const Order& order) const;

 private:
  std::vector<std::string> Names() const;  // of whole backups, oldest first
  absl::Status Fill(const Order& order, const std::string& folder, Report& report) const;
  absl::Status TakeBlobs(const Order& order, const std::set<std::string>& used,
                         const std::string& folder, Report& report) const;
  absl::Status RemoveOldest(const std::string& newest) const;

  const std::string path_;
  const std::size_t keep_;
};

}  // namespace tactus::backup
