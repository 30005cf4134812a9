// Blobs in a bucket, which several coordinators may share.

#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/bucket/bucket.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/folder_blobs.h"
#include "runtime/control_thread.h"

namespace tactus::service {

// A blob is the object PREFIX/blobs/ab/HASH, as BlobPath has it. It comes to a folder of
// this machine as it would without a bucket, goes from there to the bucket when it is whole (Keep),
// and leaves the folder then. What lies whole in the folder at Start, of a coordinator that had no
// bucket or of one that died on the way, goes to the bucket by and by, and counts as complete
// meanwhile, on its way. Which objects there are is known from a listing, at Open and at each
// Refresh, and from what was done since: whoever leads is the only one who writes and removes.
//
// A bucket does not know when an object was used: what is there counts as used when this process
// first saw it. The files' thread never waits for the bucket; a few threads do.
class BucketBlobs final : public BlobStore {
 public:
  struct Options {
    std::string folder{};  // of what comes
    bucket::BucketOptions bucket{};
    Duration retry = std::chrono::minutes(1);  // of carrying what lies in the folder
  };
  // Probes the bucket and lists it. Blocking. Errors: as bucket::Bucket has them.
  static absl::StatusOr<std::unique_ptr<BucketBlobs>> Open(const Options& options);
  ~BucketBlobs() override;
  BucketBlobs(const BucketBlobs&) = delete;
  BucketBlobs& operator=(const BucketBlobs&) = delete;

  void Start(const Surroundings& surroundings) override;
  void Stop() override { bucket_->Stop(); }
  void Join() override;
  absl::StatusOr<State> Find(const std::string& sha256) override;
  bool Has(const std::string& sha256) const override;
  void SetRemoved(std::function<void(const std::string& sha256)> removed) override;
  absl::StatusOr<BlobWriter> Write(const Upload& upload) override;
  void Keep(const std::string& sha256, Kept done) override;
  absl::StatusOr<std::unique_ptr<BlobReader>> Read(const std::string& sha256,
                                                   std::uint64_t offset) override;
  std::size_t Sweep(const std::set<std::string>& used, job::WallTime now) override;
  std::set<std::string> Remove(const std::set<std::string>& unnamed, job::WallTime since) override;
  void SetKeepAll(bool keep_all) override;
  void Refresh(Kept done) override;
  Fetch Source() const override;

  // What of a listing is our own: by hash, the size. From any thread.
  static absl::StatusOr<std::map<std::string, std::uint64_t>> ListBlobs(bucket::Bucket& bucket);

  bucket::Bucket& bucket() { return *bucket_; }
  const bucket::Bucket::Probed& probed() const { return probed_; }
  std::size_t count() const { return there_.size(); }

 private:
  struct Entry {
    std::uint64_t size_bytes = 0;
    job::WallTime used = 0;   // last
    job::WallTime since = 0;  // it is known
  };
  BucketBlobs(const Options& options, std::unique_ptr<bucket::Bucket> bucket);

  // On one of the bucket's threads; then `then` with what came of it on the files' thread.
  template <typename Result>
  void Ask(boost::asio::thread_pool& threads, std::function<Result()> ask,
           std::function<void(Result)> then);
  void Enter(const std::string& sha256, std::uint64_t size_bytes);
  bool IsUnused(const std::string& sha256, const Entry& entry, job::WallTime limit) const;
  void Discard(const std::vector<std::string>& names);
  void DiscardNext();
  // What is about to be removed, and not yet, is there again.
  bool Retrieve(const std::string& sha256);
  void OnDiscarded(const std::string& sha256, const absl::Status& status);
  void Bring(const std::string& sha256);
  void OnBrought(const std::string& sha256, std::uint64_t size_bytes, absl::Status status);
  void OnListed(job::WallTime since,
                const absl::StatusOr<std::map<std::string, std::uint64_t>>& listed);
  void CarryNext();
  void CountWaiting();
  void Tell(const absl::Status& status);
  void Gone(const std::string& sha256);

  const Options options_;
  const std::unique_ptr<bucket::Bucket> bucket_;
  bucket::Bucket::Probed probed_{};
  std::optional<Surroundings> around_;  // unset: not started
  // Apart, so that large files on their way hold up no reader.
  boost::asio::thread_pool carriers_;
  boost::asio::thread_pool askers_;
  bool joined_ = false;  // by Join's thread
  // Files' thread:
  FolderBlobs arriving_;
  std::function<void(const std::string& sha256)> removed_ = [](const std::string&) {};
  std::map<std::string, Entry> there_;  // in the bucket
  bool keep_all_ = false;
  std::map<std::string, std::vector<Kept>> bringing_;  // who waits for one that is on its way
  struct Discarded {
    std::uint64_t size_bytes = 0;
    bool asked = false;
    std::vector<Kept> waiting{};  // for it to be gone first; none before it is asked
  };
  std::map<std::string, Discarded> discarding_;
  std::deque<std::string> to_discard_;  // in their order; of some of them nothing is left to do
  std::size_t discards_ = 0;            // that are asked
  std::set<std::string> carried_;  // of the folder at Start: those that are not in the bucket yet
  std::optional<runtime::Timer> carry_;
  std::vector<Kept> refreshing_;     // who waits for the listing; empty: none is under way
  std::set<std::string> discarded_;  // since the listing began
  absl::StatusCode told_ = absl::StatusCode::kOk;  // what came of the last question
};

}  // namespace tactus::service
