// Whose uploads take how much of the disk.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "base/descriptor.h"
#include "coordinator/files/blob_store.h"

namespace tactus::service {

// Each blob that a client brought is on the account of who brought it first, with the size that was
// said, from the first message on until it is removed: one that comes in part, too, as that lies on
// the disk as well. Kept in a file of a line each, so that a restart forgets nobody's; a line that
// a crash or a full disk lost is a blob that is on nobody's account. Blocking; one thread, that of
// the blobs.
class UploadAccounts {
 public:
  // Reads the file at `path`, and leaves out blobs that `blobs` no longer has. The blobs outlive
  // this, and tell it of those that go.
  struct Options {
    std::string path{};
    std::uint64_t bytes_max = 0;  // of one account
  };
  UploadAccounts(BlobStore& blobs, Options options);
  UploadAccounts(const UploadAccounts&) = delete;
  UploadAccounts& operator=(const UploadAccounts&) = delete;

  // Puts the blob on the account of `who`, unless it is on one with as many bytes. Errors:
  // access::Bound::kUploadBytes, with what they have and how much is allowed. Requires:
  // IsSha256(sha256).
  absl::Status Charge(const std::string& who, const std::string& sha256, std::uint64_t bytes);

  // Takes it off again where nothing of the blob came to be.
  void Settle(const std::string& sha256) {
    if (!blobs_.Has(sha256)) Forget(sha256);
  }

  std::uint64_t BytesOf(const std::string& who) const;

 private:
  struct Entry {
    std::string who{};
    std::uint64_t bytes = 0;
  };
  void Read();
  void Rewrite();
  void Append(const std::string& sha256, const Entry& entry);
  void Enter(const std::string& sha256, const Entry& entry);
  void Forget(const std::string& sha256);

  BlobStore& blobs_;
  const Options options_;
  Descriptor file_;                             // none: it could not be opened, and nothing is kept
  std::size_t lines_ = 0;                       // of the file; those of blobs that are gone, too
  std::map<std::string, Entry> entries_;        // by blob
  std::map<std::string, std::uint64_t> bytes_;  // by account; no zeros
};

}  // namespace tactus::service
