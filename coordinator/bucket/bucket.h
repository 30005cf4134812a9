// A bucket of S3 or of what speaks like it: objects that are there whole or not at all.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/bucket/requester.h"

namespace tactus::bucket {

// Keys are without the bucket's prefix, of letters, digits, - _ . and /. Every method waits for the
// server, and tries again what may pass; errors beside those that it names, as Requester::Send and
// Judge have them. Any thread, several at once.
class Bucket {
 public:
  // Asks nobody. Errors: FailedPrecondition, there are no keys.
  static absl::StatusOr<std::unique_ptr<Bucket>> Open(const BucketOptions& options);

  // Writes, reads, lists and removes an object of its own; three attempts each.
  struct Probed {
    double seconds = 0;        // for the four of them
    double clock_seconds = 0;  // that this machine's clock is ahead of the server's
  };
  absl::StatusOr<Probed> Probe();

  // All objects whose keys begin with `prefix`, in the order of their keys.
  struct Object {
    std::string key{};
    std::uint64_t size_bytes = 0;
  };
  absl::Status List(const std::string& prefix, const std::function<void(Object)>& found);

  // What the server takes is what is here: it is told the hash of all that is sent, and refuses
  // what has another.
  absl::Status Put(const std::string& key, std::string_view bytes);

  // The same where there is no such object yet, else nothing: whoever asks reads it to know what it
  // holds, as it may be this call's own, whose first answer was lost. Servers that do not know the
  // condition take the newest one.
  absl::Status PutNew(const std::string& key, std::string_view bytes);

  // The file, in parts where it is large, each in memory while it is sent; the object is there when
  // all of them are. Errors: DataLoss, the file has another size or hash than said, and nothing of
  // it is there; as the file system has them.
  struct File {
    std::string path{};
    std::uint64_t size_bytes = 0;
    std::string sha256{};
  };
  absl::Status PutFile(const std::string& key, const File& file);

  // `count` bytes, > 0, which the object has from `offset` on. Errors: NotFound.
  absl::StatusOr<std::string> Get(const std::string& key, const Request::Range& range);

  // Errors: NotFound.
  absl::StatusOr<std::uint64_t> SizeOf(const std::string& key);

  // Ok also where there is none.
  absl::Status Remove(const std::string& key);

  // Parts of uploads that were begun below `prefix` longer than `age` ago and never ended, which
  // are paid for and seen by nobody. Returns of how many uploads.
  absl::StatusOr<std::size_t> RemoveOldParts(const std::string& prefix, Duration age);

  // As Requester::Watch.
  void Watch(std::function<void(const Attempted&)> watch) { requester_.Watch(std::move(watch)); }
  // As Requester::Stop.
  void Stop() { requester_.Stop(); }

  const BucketOptions& options() const { return requester_.options(); }

 private:
  explicit Bucket(const BucketOptions& options)
      : requester_(options), prefix_(PlaceOf(options).prefix) {}

  absl::StatusOr<Answer> Ask(const Request& request);
  absl::Status Unlisted(const std::string& why) const;
  absl::Status PutParts(const std::string& key, const File& file);
  absl::Status SendParts(const std::string& key, const File& file, const std::string& upload);
  absl::Status Complete(const std::string& key, const File& file, const std::string& upload,
                        const std::vector<std::string>& tags);

  Requester requester_;
  const std::string prefix_;
};

}  // namespace tactus::bucket
