#include "coordinator/files/upload_accounts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "coordinator/access/bounds.h"
#include "runtime/logging.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::service {
namespace {

// Lines of blobs that are gone, before the file is written anew.
constexpr std::size_t kSpareLinesMax = 4096;
// That a file takes beside its content, so that many empty ones are not for nothing.
constexpr std::uint64_t kFileBytes = 4096;

std::string LineOf(const std::string& sha256, std::uint64_t bytes, const std::string& who) {
  return sha256 + " " + std::to_string(bytes) + " " + who + "\n";
}

}  // namespace

UploadAccounts::UploadAccounts(BlobStore& blobs, Options options)
    : blobs_(blobs), options_(std::move(options)) {
  Read();
  Rewrite();
  blobs_.SetRemoved([this](const std::string& sha256) { Forget(sha256); });
}

void UploadAccounts::Read() {
  std::ifstream in(options_.path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string sha256;
    Entry entry;
    // What a crash left of a line is none.
    if (!(fields >> sha256 >> entry.bytes >> entry.who) || !runtime::IsSha256(sha256)) continue;
    // Of a blob that went from one account to another, the last line counts.
    if (!blobs_.Has(sha256)) continue;
    Forget(sha256);
    Enter(sha256, entry);
  }
}

// With those lines alone that still count.
void UploadAccounts::Rewrite() {
  std::string text;
  for (const auto& [sha256, entry] : entries_) text += LineOf(sha256, entry.bytes, entry.who);
  absl::Status status = runtime::WriteFileWhole(options_.path, text);
  file_ =
      Descriptor(::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (status.ok() && !file_.open()) {
    status = runtime::FileError(errno, options_.path, "cannot be opened");
  }
  lines_ = entries_.size();
  if (status.ok()) return;
  runtime::Logger("files")->warn("uploads not on record, a restart forgets whose they are error={}",
                                 runtime::Quoted(std::string(status.message())));
}

void UploadAccounts::Append(const std::string& sha256, const Entry& entry) {
  if (lines_ >= entries_.size() + kSpareLinesMax) return Rewrite();
  const std::string line = LineOf(sha256, entry.bytes, entry.who);
  // A full disk loses the line, not the account of this process.
  if (file_.open() && ::write(file_.get(), line.data(), line.size()) > 0) ++lines_;
}

// Who says less at first, and more when the blob is known, pays for more: whoever goes on with it
// has it from then on.
absl::Status UploadAccounts::Charge(const std::string& who, const std::string& sha256,
                                    std::uint64_t bytes) {
  const Entry entry = {.who = who, .bytes = bytes + kFileBytes};
  const auto known = entries_.find(sha256);
  if (known != entries_.end() && known->second.bytes >= entry.bytes) return absl::OkStatus();
  const bool own = known != entries_.end() && known->second.who == who;
  const std::uint64_t has = BytesOf(who) - (own ? known->second.bytes : 0);
  if (entry.bytes > options_.bytes_max || has > options_.bytes_max - entry.bytes) {
    return access::Beyond(
        access::Bound::kUploadBytes,
        "upload: " + who + " has " + std::to_string(has >> 20) + " MiB of uploads here, and " +
            std::to_string(bytes >> 20) + " MiB more would be above the " +
            std::to_string(options_.bytes_max >> 20) +
            " MiB that each may have (--upload-bytes-per-user); they go a day after the last job "
            "that names them is deleted");
  }
  Forget(sha256);
  Enter(sha256, entry);
  Append(sha256, entry);
  return absl::OkStatus();
}

void UploadAccounts::Enter(const std::string& sha256, const Entry& entry) {
  entries_[sha256] = entry;
  bytes_[entry.who] += entry.bytes;
}

void UploadAccounts::Forget(const std::string& sha256) {
  const auto found = entries_.find(sha256);
  if (found == entries_.end()) return;
  const auto account = bytes_.find(found->second.who);
  account->second -= found->second.bytes;
  if (account->second == 0) bytes_.erase(account);
  entries_.erase(found);
}

std::uint64_t UploadAccounts::BytesOf(const std::string& who) const {
  const auto found = bytes_.find(who);
  return found == bytes_.end() ? 0 : found->second;
}

}  // namespace tactus::service
