#include "coordinator/files/bucket_blobs.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "coordinator/files/bucket_reader.h"
#include "coordinator/files/state_folder.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// Files that go to the bucket at once, and questions: ranges, sizes, listings, removals.
constexpr std::size_t kCarriers = 4;
constexpr std::size_t kAskers = 8;
// Of the askers: a sweep of thousands holds up no reader.
constexpr std::size_t kDiscards = 2;
constexpr std::size_t kFetchBytes = std::size_t{8} << 20;

std::string KeyOf(const std::string& sha256) { return BlobPath(kBlobsName, sha256); }

absl::Status NotThere(const std::string& sha256) {
  return runtime::WithReason(absl::NotFoundError("sha256:" + sha256 + ": no such file here"),
                             {.reason = "BLOB_NOT_FOUND", .metadata = {{"sha256", sha256}}});
}

// That the bucket's keys are over, or that it is away, is nothing that whoever calls has done
// wrong: they try again until somebody has mended it.
absl::Status ForCaller(const absl::Status& status) {
  if (status.ok() || absl::IsDataLoss(status)) return status;
  return absl::UnavailableError(std::string(status.message()));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::uint64_t>> BucketBlobs::ListBlobs(
    bucket::Bucket& bucket) {
  std::map<std::string, std::uint64_t> listed;
  const absl::Status status =
      bucket.List(std::string(kBlobsName) + "/", [&listed](const bucket::Bucket::Object& object) {
        const std::string name = object.key.substr(object.key.rfind('/') + 1);
        if (runtime::IsSha256(name) && object.key == KeyOf(name)) {
          listed.emplace(name, object.size_bytes);
        }
      });
  if (!status.ok()) return status;
  return listed;
}

absl::StatusOr<std::unique_ptr<BucketBlobs>> BucketBlobs::Open(const Options& options) {
  absl::StatusOr<std::unique_ptr<bucket::Bucket>> bucket = bucket::Bucket::Open(options.bucket);
  if (!bucket.ok()) return bucket.status();
  const absl::StatusOr<bucket::Bucket::Probed> probed = (*bucket)->Probe();
  if (!probed.ok()) return probed.status();
  const auto listed = ListBlobs(**bucket);
  if (!listed.ok()) return listed.status();
  std::unique_ptr<BucketBlobs> blobs(new BucketBlobs(options, *std::move(bucket)));
  blobs->probed_ = *probed;
  for (const auto& [sha256, size] : *listed) blobs->Enter(sha256, size);
  return blobs;
}

BucketBlobs::BucketBlobs(const Options& options, std::unique_ptr<bucket::Bucket> bucket)
    : options_(options),
      bucket_(std::move(bucket)),
      carriers_(kCarriers),
      askers_(kAskers),
      arriving_(options.folder) {
  arriving_.SetLetGo([this](const std::string& sha256) {
    const auto found = there_.find(sha256);
    if (found != there_.end()) found->second.used = runtime::WallNow();
  });
}

BucketBlobs::~BucketBlobs() {
  Stop();
  Join();
}

void BucketBlobs::Start(const Surroundings& surroundings) {
  around_.emplace(surroundings);
  if (metrics::CoordinatorMetrics* const metrics = around_->metrics) {
    bucket_->Watch([metrics](const bucket::Attempted& attempted) {
      metrics->CountBucketRequest(std::string(attempted.method), std::string(attempted.outcome),
                                  attempted.took);
    });
  }
  around_->files.Post([this] {
    for (const std::string& sha256 : arriving_.NamesOfWhole()) carried_.insert(sha256);
    if (carried_.empty()) return;
    CountWaiting();
    runtime::Logger("files")->info("blobs go to the bucket count={}", carried_.size());
    carry_.emplace(around_->files);
    CarryNext();
  });
}

void BucketBlobs::Join() {
  if (std::exchange(joined_, true)) return;
  carriers_.join();
  askers_.join();
  if (around_) around_->files.RunAndWait([this] { carry_.reset(); });
}

template <typename Result>
void BucketBlobs::Ask(boost::asio::thread_pool& threads, std::function<Result()> ask,
                      std::function<void(Result)> then) {
  boost::asio::post(threads, [this, ask = std::move(ask), then = std::move(then)] {
    around_->files.Post([result = ask(), then] { then(result); });
  });
}

void BucketBlobs::Enter(const std::string& sha256, std::uint64_t size_bytes) {
  const job::WallTime now = runtime::WallNow();
  there_[sha256] = {.size_bytes = size_bytes, .used = now, .since = now};
}

absl::StatusOr<BlobStore::State> BucketBlobs::Find(const std::string& sha256) {
  Retrieve(sha256);
  const auto found = there_.find(sha256);
  if (found != there_.end()) {
    found->second.used = runtime::WallNow();
    return State{.received_bytes = found->second.size_bytes, .complete = true};
  }
  absl::StatusOr<State> state = arriving_.Find(sha256);
  // Whoever brought it is told when it is in the bucket, and others may name it from then on.
  if (state.ok() && state->complete) {
    state->complete = state->on_its_way = carried_.contains(sha256);
  }
  return state;
}

bool BucketBlobs::Has(const std::string& sha256) const {
  return there_.contains(sha256) || arriving_.Has(sha256);
}

void BucketBlobs::SetRemoved(std::function<void(const std::string& sha256)> removed) {
  removed_ = std::move(removed);
  arriving_.SetRemoved([this](const std::string& sha256) {
    if (!there_.contains(sha256)) removed_(sha256);
  });
}

absl::StatusOr<BlobWriter> BucketBlobs::Write(const Upload& upload) {
  if (!there_.contains(upload.sha256)) return arriving_.Write(upload);
  return arriving_.WriterOfWhole(upload);
}

void BucketBlobs::Keep(const std::string& sha256, Kept done) {
  // A removal that is under way would take what is brought now along.
  if (!Retrieve(sha256)) return discarding_[sha256].waiting.push_back(std::move(done));
  const auto [entry, first] = bringing_.try_emplace(sha256);
  entry->second.push_back(std::move(done));
  CountWaiting();
  if (first) Bring(sha256);
}

void BucketBlobs::Bring(const std::string& sha256) {
  const auto found = there_.find(sha256);
  if (found != there_.end()) {
    // Somebody else may have removed it: what names it is about to be on record.
    const std::uint64_t size = found->second.size_bytes;
    return Ask<absl::Status>(
        askers_,
        [this, sha256, size]() -> absl::Status {
          const absl::StatusOr<std::uint64_t> there = bucket_->SizeOf(KeyOf(sha256));
          if (!there.ok()) return there.status();
          return *there == size ? absl::OkStatus() : NotThere(sha256);
        },
        [this, sha256, size](const absl::Status& status) { OnBrought(sha256, size, status); });
  }
  const std::optional<std::uint64_t> size = arriving_.SizeOfWhole(sha256);
  if (!size) return OnBrought(sha256, 0, NotThere(sha256));
  Ask<absl::Status>(
      carriers_,
      [this, sha256,
       file =
           bucket::Bucket::File{
               .path = arriving_.PathOf(sha256), .size_bytes = *size, .sha256 = sha256}] {
        return bucket_->PutFile(KeyOf(sha256), file);
      },
      [this, sha256, size = *size](const absl::Status& status) {
        OnBrought(sha256, size, status);
      });
}

void BucketBlobs::OnBrought(const std::string& sha256, std::uint64_t size_bytes,
                            absl::Status status) {
  const bool absent = absl::IsNotFound(status);
  if (absent && there_.contains(sha256)) {
    Gone(sha256);
    if (arriving_.SizeOfWhole(sha256)) return Bring(sha256);
    status =
        absl::UnavailableError("sha256:" + sha256 + ": is gone from the bucket; bring it again");
  }
  if (!absent) Tell(status);
  if (status.ok()) {
    Enter(sha256, size_bytes);
    arriving_.Drop(sha256);
    carried_.erase(sha256);
  } else if (absl::IsDataLoss(status)) {
    // Damaged here: as long as it lies there nobody could bring it again.
    arriving_.Drop(sha256);
    carried_.erase(sha256);
    removed_(sha256);
  }
  std::vector<Kept> waiting = std::move(bringing_[sha256]);
  bringing_.erase(sha256);
  CountWaiting();
  for (const Kept& done : waiting) done(ForCaller(status));
}

absl::StatusOr<std::unique_ptr<BlobReader>> BucketBlobs::Read(const std::string& sha256,
                                                              std::uint64_t offset) {
  const auto found = there_.find(sha256);
  if (found == there_.end()) return arriving_.Read(sha256, offset);
  const std::uint64_t size = found->second.size_bytes;
  if (offset > size) {
    return absl::OutOfRangeError("offset: found " + std::to_string(offset) +
                                 ", allowed is at most the file's size, " + std::to_string(size));
  }
  arriving_.Hold(sha256);
  const auto fetch = [this, sha256](std::uint64_t from, std::size_t count, BlobReader::Took took) {
    Ask<absl::StatusOr<std::string>>(
        askers_,
        [this, sha256, from, count] {
          return bucket_->Get(KeyOf(sha256), {.offset = from, .count = count});
        },
        [this, sha256, took = std::move(took)](const absl::StatusOr<std::string>& bytes) {
          if (bytes.ok()) return took(bytes);
          const bool gone = absl::IsNotFound(bytes.status());
          if (gone) Gone(sha256);
          Tell(gone ? absl::OkStatus() : bytes.status());
          took(gone ? NotThere(sha256) : ForCaller(bytes.status()));
        });
  };
  return std::make_unique<BucketReader>(BucketReader::Order{
      .sha256 = sha256,
      .size_bytes = size,
      .offset = offset,
      .fetch = fetch,
      .held = std::shared_ptr<void>(nullptr, [this, sha256](void*) { arriving_.LetGo(sha256); })});
}

// Removed by somebody else.
void BucketBlobs::Gone(const std::string& sha256) {
  if (there_.erase(sha256) == 0) return;
  runtime::Logger("files")->warn("blob gone from the bucket sha256={}", sha256);
  if (!arriving_.Has(sha256)) removed_(sha256);
}

bool BucketBlobs::IsUnused(const std::string& sha256, const Entry& entry,
                           job::WallTime limit) const {
  return entry.used < limit && !arriving_.Holds(sha256) && !bringing_.contains(sha256);
}

std::size_t BucketBlobs::Sweep(const std::set<std::string>& used, job::WallTime now) {
  if (keep_all_) return 0;
  const std::size_t swept = arriving_.Sweep(used, now);
  std::vector<std::string> names;
  for (const auto& [sha256, entry] : there_) {
    if (used.contains(sha256) || !IsUnused(sha256, entry, now - kUnusedAge.count())) continue;
    names.push_back(sha256);
  }
  Discard(names);
  return swept + names.size();
}

std::set<std::string> BucketBlobs::Remove(const std::set<std::string>& unnamed,
                                          job::WallTime since) {
  if (keep_all_) return unnamed;
  std::set<std::string> left = arriving_.Remove(unnamed, since);
  std::vector<std::string> names;
  for (const std::string& sha256 : unnamed) {
    const auto found = there_.find(sha256);
    if (found == there_.end()) continue;
    if (IsUnused(sha256, found->second, since)) {
      names.push_back(sha256);
    } else {
      left.insert(sha256);
    }
  }
  Discard(names);
  return left;
}

void BucketBlobs::SetKeepAll(bool keep_all) {
  keep_all_ = keep_all;
  arriving_.SetKeepAll(keep_all);
}

// They are not there from now on.
void BucketBlobs::Discard(const std::vector<std::string>& names) {
  for (const std::string& sha256 : names) {
    const auto found = there_.find(sha256);
    discarding_[sha256].size_bytes = found->second.size_bytes;
    there_.erase(found);
    to_discard_.push_back(sha256);
    if (!refreshing_.empty()) discarded_.insert(sha256);
  }
  DiscardNext();
}

void BucketBlobs::DiscardNext() {
  while (discards_ < kDiscards && !to_discard_.empty()) {
    const std::string sha256 = std::move(to_discard_.front());
    to_discard_.pop_front();
    const auto found = discarding_.find(sha256);
    if (found == discarding_.end() || std::exchange(found->second.asked, true)) continue;
    ++discards_;
    Ask<absl::Status>(
        askers_,
        [this, sha256] {
          // Asked each time: whoever leads by now may have a job that names it.
          return around_->leads() ? bucket_->Remove(KeyOf(sha256))
                                  : absl::CancelledError("another coordinator may lead");
        },
        [this, sha256](const absl::Status& status) { OnDiscarded(sha256, status); });
  }
}

// True: it is not about to be removed, or no more. False: it is being removed.
bool BucketBlobs::Retrieve(const std::string& sha256) {
  const auto found = discarding_.find(sha256);
  if (found == discarding_.end()) return true;
  if (found->second.asked) return false;
  Enter(sha256, found->second.size_bytes);
  discarding_.erase(found);
  return true;
}

// What could not be removed, or was removed without our knowing, the next listing says.
void BucketBlobs::OnDiscarded(const std::string& sha256, const absl::Status& status) {
  Tell(absl::IsCancelled(status) ? absl::OkStatus() : status);
  const auto found = discarding_.find(sha256);
  std::vector<Kept> waiting = std::move(found->second.waiting);
  discarding_.erase(found);
  --discards_;
  if (!arriving_.Has(sha256)) removed_(sha256);
  for (Kept& done : waiting) Keep(sha256, std::move(done));
  DiscardNext();
}

void BucketBlobs::Refresh(Kept done) {
  refreshing_.push_back(std::move(done));
  if (refreshing_.size() > 1) return;
  discarded_.clear();
  for (const auto& [sha256, discarded] : discarding_) discarded_.insert(sha256);
  using Listed = absl::StatusOr<std::map<std::string, std::uint64_t>>;
  Ask<Listed>(
      askers_,
      [this]() -> Listed {
        // Whose keys may not list them, or whose server does not, has a lifecycle rule for that.
        if (around_->leads()) {
          bucket_->RemoveOldParts(std::string(kBlobsName) + "/", kUnusedAge).IgnoreError();
        }
        return ListBlobs(*bucket_);
      },
      [this, since = runtime::WallNow()](const Listed& listed) { OnListed(since, listed); });
}

void BucketBlobs::OnListed(job::WallTime since,
                           const absl::StatusOr<std::map<std::string, std::uint64_t>>& listed) {
  Tell(listed.status());
  if (listed.ok()) {
    std::vector<std::string> gone;
    for (const auto& [sha256, entry] : there_) {
      if (entry.since < since && !listed->contains(sha256)) gone.push_back(sha256);
    }
    for (const std::string& sha256 : gone) Gone(sha256);
    for (const auto& [sha256, size] : *listed) {
      if (!there_.contains(sha256) && !discarded_.contains(sha256)) Enter(sha256, size);
    }
  }
  const std::vector<Kept> waiting = std::exchange(refreshing_, {});
  for (const Kept& done : waiting) done(ForCaller(listed.status()));
}

// One after the other: what is brought now comes first.
void BucketBlobs::CarryNext() {
  if (!carry_) return;
  if (carried_.empty()) {
    runtime::Logger("files")->info("blobs are in the bucket count={}", there_.size());
    return;
  }
  const std::string sha256 = *carried_.begin();
  Keep(sha256, [this, sha256](const absl::Status& status) {
    if (!carry_) return;
    if (absl::IsDataLoss(status) || !arriving_.SizeOfWhole(sha256)) {
      carried_.erase(sha256);
      CountWaiting();
    }
    if (status.ok() || absl::IsDataLoss(status)) return CarryNext();
    carry_->After(options_.retry, [this] { CarryNext(); });
  });
}

BlobStore::Fetch BucketBlobs::Source() const {
  return [bucket = bucket_.get()](const std::string& sha256,
                                  const std::function<absl::Status(std::string_view)>& take) {
    const absl::StatusOr<std::uint64_t> size = bucket->SizeOf(KeyOf(sha256));
    if (!size.ok()) return size.status();
    for (std::uint64_t at = 0; at < *size;) {
      const std::size_t count = std::min<std::uint64_t>(*size - at, kFetchBytes);
      const absl::StatusOr<std::string> bytes =
          bucket->Get(KeyOf(sha256), {.offset = at, .count = count});
      if (!bytes.ok()) return bytes.status();
      const absl::Status taken = take(*bytes);
      if (!taken.ok()) return taken;
      at += count;
    }
    return absl::OkStatus();
  };
}

// What is brought and there already counts, too: it is being looked for.
void BucketBlobs::CountWaiting() {
  if (around_->metrics == nullptr) return;
  const auto others = std::ranges::count_if(
      bringing_, [this](const auto& one) { return !carried_.contains(one.first); });
  around_->metrics->SetBucketWaiting(carried_.size() + static_cast<std::size_t>(others));
}

// Once for as long as it goes wrong in one way.
void BucketBlobs::Tell(const absl::Status& status) {
  if (absl::IsCancelled(status)) return;
  const absl::StatusCode former = std::exchange(told_, status.code());
  if (former == told_) return;
  const auto log = runtime::Logger("files");
  if (status.ok()) return log->info("bucket answers again");
  log->warn("bucket fails error={}", runtime::Quoted(std::string(status.message())));
}

}  // namespace tactus::service
