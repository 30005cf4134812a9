#include "agent/daemon/blob_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/daemon/transfer.h"
#include "runtime/arriving_file.h"
#include "runtime/logging.h"
#include "runtime/process.h"
#include "runtime/sha256.h"
#include "runtime/status.h"
#include "tactus/v1/artifacts.grpc.pb.h"

namespace tactus::agent {
namespace {

using tactus::v1::Artifacts;
using tactus::v1::BlobChunk;
using tactus::v1::DownloadBlobRequest;

// One attempt; the next one goes on where it came to.
constexpr std::chrono::minutes kAttemptLimit{10};
// Hashed of what an earlier attempt left before it is looked whether the transfer is given up.
constexpr std::size_t kCatchUpBytes = std::size_t{16} << 20;
constexpr char kPartSuffix[] = ".part";
constexpr char kGoneSuffix[] = ".gone";

// A file of the cache, or something else that lies in its folder.
struct Kept {
  std::string path{};
  std::string name{};
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  // [ns since 1970]
};

std::vector<Kept> FilesIn(const std::string& folder) {
  std::vector<Kept> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat found = {};
    const std::string path = entry->path().string();
    if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    files.push_back(
        {.path = path,
         .name = entry->path().filename().string(),
         .bytes = static_cast<std::uint64_t>(found.st_size),
         .used = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec});
  }
  return files;
}

// Hashes what an earlier attempt left.
absl::Status CatchUp(runtime::ArrivingFile& file, const std::atomic<bool>& cancelled) {
  while (!cancelled) {
    const absl::StatusOr<bool> whole = file.CatchUp(kCatchUpBytes);
    if (!whole.ok()) return whole.status();
    if (*whole) return absl::OkStatus();
  }
  return absl::CancelledError("given up");
}

// What the disk says of a file is not what the coordinator says of the blob.
absl::Status OfTheDisk(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsDataLoss(status)) return status;
  return absl::InternalError(status.message());
}

// Whether the blob lies at `path`, as it came. One that changed or cannot be read is removed.
// Error: Cancelled.
absl::StatusOr<bool> IsWhole(const std::string& path, const std::string& sha256,
                             const std::atomic<bool>& cancelled) {
  if (::access(path.c_str(), F_OK) != 0) return false;
  auto file = runtime::ArrivingFile::Open(path);
  absl::Status status = file.ok() ? CatchUp(*file, cancelled) : file.status();
  if (absl::IsCancelled(status)) return status;
  if (status.ok() && file->FinishHash() == sha256) return true;
  if (status.ok()) status = absl::DataLossError("its content has changed");
  runtime::Logger("agent")->warn("kept file damaged, is fetched anew path={} reason={}",
                                 runtime::Quoted(path),
                                 runtime::Quoted(std::string(status.message())));
  ::unlink(path.c_str());
  return false;
}

}  // namespace

BlobCache::BlobCache(runtime::ControlThread& control, const ChannelSource& channel, Options options)
    : control_(control),
      channel_(channel),
      options_(std::move(options)),
      rng_(Rng(1).Fork("blobs")) {
  for (const Kept& file : FilesIn(options_.folder)) {
    if (file.name.ends_with(kGoneSuffix)) ::unlink(file.path.c_str());
  }
}

BlobCache::~BlobCache() {
  for (const auto& [sha256, flight] : flights_) {
    if (flight->call != nullptr) flight->call->Cancel();
  }
  threads_.join();
}

std::uint64_t BlobCache::Fetch(const std::string& sha256, DoneHandler done) {
  const std::uint64_t pin = ++last_pin_;
  pins_[pin] = {.sha256 = sha256, .done = std::move(done)};
  if (!runtime::IsSha256(sha256)) {
    const auto wrong =
        absl::InvalidArgumentError("allowed are 64 hexadecimal digits in lower case");
    control_.Post(lifetime_.Guard([this, pin, wrong] { Answer(pin, wrong); }));
    return pin;
  }
  Touch(sha256);
  const auto [entry, fresh] = flights_.try_emplace(sha256);
  if (fresh) {
    entry->second = std::make_unique<Flight>(control_);
    Begin(sha256, *entry->second);
  }
  return pin;
}

void BlobCache::Release(std::uint64_t pin) {
  const auto found = pins_.find(pin);
  if (found == pins_.end()) return;
  const std::string sha256 = found->second.sha256;
  pins_.erase(found);
  const auto flight = flights_.find(sha256);
  if (flight == flights_.end() && runtime::IsSha256(sha256)) Touch(sha256);  // used until now
  if (flight == flights_.end() || Wanted(sha256)) return;
  // Nobody waits for it any more. A transfer that runs is over when it says so.
  if (flight->second->call != nullptr) {
    flight->second->call->Cancel();
  } else {
    flights_.erase(flight);
  }
}

// If the blob is in the folder, it counts as used now.
void BlobCache::Touch(const std::string& sha256) const {
  ::utimensat(AT_FDCWD, PathOf(sha256).c_str(), nullptr, 0);
}

bool BlobCache::Wanted(const std::string& sha256) const {
  return std::ranges::any_of(pins_, [&](const auto& pin) { return pin.second.sha256 == sha256; });
}

void BlobCache::Begin(const std::string& sha256, Flight& flight) {
  flight.call = std::make_shared<Call>();
  auto ended =
      lifetime_.Guard([this, sha256](const Attempt& attempt) { OnAttempt(sha256, attempt); });
  boost::asio::post(threads_, [this, call = flight.call, sha256, ended]() mutable {
    // The destructor waits for these threads, so the members are there.
    const Attempt attempt = Transfer(channel_.Get(), options_.folder, sha256, *call);
    control_.Post([ended, attempt]() mutable { ended(attempt); });
  });
}

// On a thread of the pool.
BlobCache::Attempt BlobCache::Transfer(const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& folder, const std::string& sha256,
                                       Call& call) {
  Attempt attempt;
  const absl::StatusOr<bool> here = IsWhole(folder + "/" + sha256, sha256, call.cancelled);
  if (!here.ok() || *here) return {.status = here.status()};
  auto file = runtime::ArrivingFile::Open(folder + "/" + sha256 + kPartSuffix);
  if (!file.ok()) return {.status = OfTheDisk(file.status())};
  if (absl::Status status = CatchUp(*file, call.cancelled); !status.ok()) {
    if (!absl::IsCancelled(status)) file->Remove();  // what cannot be read
    return {.status = OfTheDisk(status)};
  }
  const std::uint64_t before = file->size_bytes();
  grpc::ClientContext& context = call.context;
  SetLimit(context, kAttemptLimit);
  DownloadBlobRequest request;
  request.set_sha256(sha256);
  request.set_offset(before);
  const auto stub = Artifacts::NewStub(channel);
  const auto reader = stub->DownloadBlob(&context, request);
  BlobChunk chunk;
  while (attempt.status.ok() && reader->Read(&chunk)) {
    attempt.status = file->size_bytes() + chunk.data().size() <= runtime::kBlobBytesMax
                         ? OfTheDisk(file->Append(chunk.data()))
                         : absl::DataLossError("more than 64 GiB came");
  }
  if (!attempt.status.ok()) context.TryCancel();
  const absl::Status ended = runtime::FromGrpc(reader->Finish());
  if (attempt.status.ok()) attempt.status = ended;
  attempt.progressed = file->size_bytes() > before;
  if (absl::IsOutOfRange(attempt.status)) {
    file->Remove();  // more is here than there is: it is damaged
    attempt.status = absl::DataLossError("what had come was longer than the file");
  }
  if (!attempt.status.ok()) return attempt;
  if (const std::string found = file->FinishHash(); found != sha256) {
    file->Remove();
    attempt.status = absl::DataLossError("what came has the hash " + found);
    return attempt;
  }
  attempt.status = OfTheDisk(file->MoveTo(folder + "/" + sha256));
  return attempt;
}

void BlobCache::OnAttempt(const std::string& sha256, const Attempt& attempt) {
  Flight& flight = *flights_.at(sha256);
  const bool given_up = flight.call->cancelled;
  flight.call.reset();
  if (attempt.status.ok()) return Finish(sha256, attempt.status);
  if (!Wanted(sha256)) {
    flights_.erase(sha256);
    return;
  }
  if (given_up) return Begin(sha256, flight);  // and is wanted again
  // What came and was thrown away is no progress.
  const bool progressed = attempt.progressed && !absl::IsDataLoss(attempt.status);
  flight.failures = progressed ? 1 : flight.failures + 1;
  if (!WorthTrying(attempt.status, flight.failures)) return Finish(sha256, attempt.status);
  runtime::Logger("agent")->debug("fetch failed sha256={} reason={}", sha256,
                                  runtime::Quoted(std::string(attempt.status.message())));
  flight.retry_timer.After(TryAgainAfter(attempt.status, options_.backoff, flight.failures, rng_),
                           [this, sha256] { Begin(sha256, *flights_.at(sha256)); });
}

void BlobCache::Finish(const std::string& sha256, const absl::Status& status) {
  flights_.erase(sha256);
  if (status.ok()) MakeRoom();
  std::vector<std::uint64_t> waiting;
  for (const auto& [pin, wanted] : pins_) {
    if (wanted.sha256 == sha256) waiting.push_back(pin);
  }
  for (const std::uint64_t pin : waiting) Answer(pin, status);
}

void BlobCache::Answer(std::uint64_t pin, const absl::Status& status) {
  const auto found = pins_.find(pin);
  if (found == pins_.end() || !found->second.done) return;
  const DoneHandler done = std::exchange(found->second.done, nullptr);
  if (status.ok()) return done(PathOf(found->second.sha256));
  done(absl::Status(status.code(),
                    "sha256:" + found->second.sha256 + ": " + std::string(status.message())));
}

std::size_t BlobCache::Sweep(std::int64_t now) {
  std::size_t removed = 0;
  for (const Kept& file : FilesIn(options_.folder)) {
    if (file.name.ends_with(kGoneSuffix)) continue;
    if (InUse(file.name)) {
      ::utimensat(AT_FDCWD, file.path.c_str(), nullptr, 0);
    } else if (now - file.used >= options_.keep.count()) {
      RemoveLater(file.path);
      ++removed;
    }
  }
  return removed;
}

// `file`: of the folder, a blob or its beginning.
bool BlobCache::InUse(const std::string& file) const {
  const std::string sha256 = file.substr(0, file.find('.'));
  return Wanted(sha256) || flights_.contains(sha256);
}

// Removes what was used longest ago and is not pinned, until the rest is within its bound. The
// disk's work is left to the pool.
void BlobCache::MakeRoom() {
  std::vector<Kept> files = FilesIn(options_.folder);
  std::erase_if(files, [](const Kept& file) { return file.name.ends_with(kGoneSuffix); });
  std::uint64_t bytes = 0;
  for (const Kept& file : files) bytes += file.bytes;
  std::ranges::sort(files, {}, &Kept::used);
  for (const Kept& file : files) {
    if (bytes <= options_.bytes_max) return;
    if (InUse(file.name)) continue;
    bytes -= file.bytes;
    RemoveLater(file.path);
  }
}

void BlobCache::RemoveLater(const std::string& path) {
  const std::string gone = path + kGoneSuffix;
  if (std::rename(path.c_str(), gone.c_str()) != 0) return;
  boost::asio::post(threads_, [gone] { ::unlink(gone.c_str()); });
}

}  // namespace tactus::agent
