#include "coordinator/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <utility>

#include "identity/secret_file.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::access {
namespace {

constexpr auto kRetry = std::chrono::milliseconds(500);
// Between two lines that say how many refusals were left out.
constexpr auto kSayLeftOut = std::chrono::seconds(1);
// Of all files, which are as many at least.
constexpr std::uint64_t kFilesMin = 4;

// The last whole line of a file, and where what is behind it begins.
struct Tail {
  std::string line{};       // without its end; empty: there is none
  std::uint64_t whole = 0;  // bytes up to the end of that line
};

// Lines are below 2 KiB: the end of the file is enough.
Tail ReadTail(int file, std::uint64_t size) {
  constexpr std::uint64_t kLineBytesMax = 64 << 10;
  const std::uint64_t begin = size > kLineBytesMax ? size - kLineBytesMax : 0;
  std::string bytes(size - begin, '\0');
  const ssize_t count = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(begin));
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  const std::size_t end = bytes.rfind('\n');
  if (end == std::string::npos) return {.whole = begin};
  const std::size_t before = end == 0 ? std::string::npos : bytes.rfind('\n', end - 1);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  return {.line = bytes.substr(first, end - first), .whole = begin + end + 1};
}

// 0: it cannot be looked at.
std::uint64_t SizeOf(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

// Where the chain stands before a file; nothing where its first line is none.
std::optional<ChainEnd> BeforeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const absl::StatusOr<ReadLine> first = ReadChainLine(line);
  if (!first.ok()) return std::nullopt;
  return ChainEnd{.number = first->end.number - 1, .hash = first->prev};
}

}  // namespace

AuditLog::AuditLog(const AuditOptions& options)
    : options_(options),
      end_(EmptyChain()),
      allowance_(static_cast<double>(options.refusals_max)),
      allowed_(runtime::Now()) {}

AuditLog::Slot::~Slot() {
  if (log_ != nullptr) log_->GiveBack();
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditOptions& options) {
  std::unique_ptr<AuditLog> log(new AuditLog(options));
  const absl::Status status = log->Continue();
  if (!status.ok()) return status;
  log->thread_ = std::thread([raw = log.get()] { raw->Run(); });
  return log;
}

AuditLog::~AuditLog() { Stop(); }

absl::Status AuditLog::Continue() {
  const absl::Status made = identity::MakePrivateFolder(options_.folder);
  if (!made.ok()) return made;
  const std::vector<std::string> files = AuditFiles(options_.folder);
  if (files.empty()) return BeginFile();
  const std::string path = options_.folder + "/" + files.back();
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  struct stat found {};
  if (!file_.open() || ::fstat(file_.get(), &found) != 0 || ::fchmod(file_.get(), 0600) != 0) {
    return runtime::FileError(errno, path, "cannot be opened");
  }
  const auto bytes = static_cast<std::uint64_t>(found.st_size);
  const Tail tail = ReadTail(file_.get(), bytes);
  if (tail.whole < bytes) {
    cut_bytes_ = bytes - tail.whole;
    runtime::Logger("audit")->warn("audit line cut, a crash left it half written file={} bytes={}",
                                   runtime::Quoted(path), cut_bytes_);
    if (::ftruncate(file_.get(), static_cast<off_t>(tail.whole)) != 0) {
      return runtime::FileError(errno, path, "cannot be cut");
    }
  }
  size_ = tail.whole;
  // Made and never written, as the coordinator ended then: its name says what comes.
  if (tail.line.empty() && size_ == 0 && files.size() > 1) {
    ::unlink(path.c_str());
    return Continue();
  }
  if (tail.line.empty() && size_ == 0) return absl::OkStatus();
  const absl::StatusOr<ReadLine> last = ReadChainLine(tail.line);
  if (last.ok()) {
    end_ = last->end;
    return absl::OkStatus();
  }
  runtime::Logger("audit")->error("audit log not continued, a new chain begins file={} error={}",
                                  runtime::Quoted(path), runtime::Quoted(last.status().ToString()));
  // Above every number that the file may have, so that it comes behind it.
  end_.number = FirstLineOf(files.back()) + bytes;
  return BeginFile();
}

absl::Status AuditLog::BeginFile() {
  const std::string path = options_.folder + "/" + AuditFileName(end_.number + 1);
  file_ = Descriptor(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_.open()) return runtime::FileError(errno, path, "cannot be made");
  size_ = 0;
  return absl::OkStatus();
}

std::unique_ptr<AuditLog::Slot> AuditLog::Reserve() {
  const threads::MutexLock lock(mutex_);
  if (promised_ >= options_.lines_max || stopping_) return nullptr;
  ++promised_;
  return std::make_unique<Slot>(*this);
}

void AuditLog::GiveBack() {
  const threads::MutexLock lock(mutex_);
  --promised_;
}

void AuditLog::Write(std::unique_ptr<Slot> slot, AuditEntry entry) {
  slot->log_ = nullptr;  // the line holds its place on
  entry.time = runtime::WallNow();
  const threads::MutexLock lock(mutex_);
  changes_.push_back(std::move(entry));
  changed_.NotifyAll();
}

void AuditLog::WriteRefusal(AuditEntry entry) {
  entry.time = runtime::WallNow();
  const threads::MutexLock lock(mutex_);
  if (refusals_.size() >= options_.refusals_max || !MayWriteRefusal()) {
    ++left_out_;
  } else {
    refusals_.push_back(std::move(entry));
  }
  changed_.NotifyAll();
}

bool AuditLog::MayWriteRefusal() {
  const Instant now = runtime::Now();
  allowance_ = std::min(static_cast<double>(options_.refusals_max),
                        allowance_ + ToSeconds(now - allowed_) * options_.refusals_per_second);
  allowed_ = now;
  if (allowance_ < 1) return false;
  allowance_ -= 1;
  return true;
}

bool AuditLog::LeftOutIsDue() const {
  return left_out_ > 0 && (stopping_ || std::chrono::steady_clock::now() >= say_left_out_);
}

void AuditLog::Stop() {
  {
    const threads::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

// False: there is nothing left to do.
bool AuditLog::AwaitWork() {
  const threads::MutexLock lock(mutex_);
  while (changes_.empty() && refusals_.empty() && !LeftOutIsDue() && !stopping_) {
    if (left_out_ == 0) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, say_left_out_);
    }
  }
  return !changes_.empty() || !refusals_.empty() || left_out_ > 0;
}

// The changes stay in the queue until they are written.
AuditLog::Batch AuditLog::Take() {
  const threads::MutexLock lock(mutex_);
  Batch batch = {.entries = {changes_.begin(), changes_.end()}, .changes = changes_.size()};
  std::vector<AuditEntry>& entries = batch.entries;
  entries.insert(entries.end(), refusals_.begin(), refusals_.end());
  if (LeftOutIsDue()) {
    entries.push_back({.time = runtime::WallNow(),
                       .who = "coordinator",
                       .method = "audit/refusals_left_out",
                       .about = std::to_string(left_out_),
                       .code = "RESOURCE_EXHAUSTED"});
    left_out_ = 0;
    say_left_out_ = std::chrono::steady_clock::now() + kSayLeftOut;
  }
  refusals_.clear();
  return batch;
}

void AuditLog::Pause() {
  const auto end = std::chrono::steady_clock::now() + kRetry;
  const threads::MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, end)) {
  }
}

// Entries that could not be written are kept: their places are not given back, so that the queue
// becomes full, and what would change something is refused.
void AuditLog::Run() {
  while (AwaitWork()) {
    const Batch batch = Take();
    absl::Status status = Append(batch.entries);
    while (!status.ok()) {
      if (!std::exchange(failing_, true)) {
        runtime::Logger("audit")->error(
            "audit log not written, changes are refused once they fill its queue places={} "
            "error={}",
            options_.lines_max, runtime::Quoted(std::string(status.message())));
      }
      Pause();
      status = Append(batch.entries);
      const threads::MutexLock lock(mutex_);
      if (stopping_ && !status.ok()) return;
    }
    failing_ = false;
    const threads::MutexLock lock(mutex_);
    const auto written = static_cast<std::ptrdiff_t>(batch.changes);
    changes_.erase(changes_.begin(), changes_.begin() + written);
    promised_ -= batch.changes;
  }
}

std::uint64_t AuditLog::FileBytesMax() const {
  return std::min(options_.bytes_max, options_.kept_bytes_max / kFilesMin);
}

// Of files before the present one, which is still to grow.
AuditLog::Surplus AuditLog::FindSurplus() const {
  Surplus surplus;
  std::vector<std::string> files = AuditFiles(options_.folder);
  if (files.size() < 2) return surplus;
  std::uint64_t kept = FileBytesMax();
  std::size_t first = files.size() - 1;
  while (first > 0) {
    kept += SizeOf(options_.folder + "/" + files[first - 1]);
    if (kept > options_.kept_bytes_max) break;
    --first;
  }
  if (first == 0) return surplus;
  const bool present = first + 1 == files.size();
  // One that was tampered with goes as well, and is not made to look whole.
  surplus.end = present ? end_
                        : BeforeFile(options_.folder + "/" + files[first])
                              .value_or(ChainEnd{.number = FirstLineOf(files[first]) - 1});
  files.resize(first);
  surplus.files = std::move(files);
  return surplus;
}

// All of them or none: what a full disk left of them is cut off again. Where a file begins, the
// oldest ones go, once the line is durable that says so.
absl::Status AuditLog::Append(std::vector<AuditEntry> entries) {
  if (size_ >= FileBytesMax()) {
    const absl::Status begun = BeginFile();
    if (!begun.ok()) return begun;
  }
  const Surplus surplus = size_ == 0 ? FindSurplus() : Surplus{};
  if (!surplus.files.empty()) entries.insert(entries.begin(), RemovalEntry(surplus.end));
  ChainEnd end = end_;
  std::string lines;
  for (const AuditEntry& entry : entries) lines += ChainLine(entry, end);
  std::size_t written = 0;
  while (written < lines.size()) {
    const ssize_t count = ::write(file_.get(), lines.data() + written, lines.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  if (written == lines.size() && ::fdatasync(file_.get()) == 0) {
    end_ = std::move(end);
    size_ += lines.size();
    for (const std::string& file : surplus.files) {
      ::unlink((options_.folder + "/" + file).c_str());
    }
    return absl::OkStatus();
  }
  const int error = errno;
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
    return runtime::FileError(errno, options_.folder, "cannot be cut");
  }
  return runtime::FileError(error, options_.folder, "cannot be written");
}

}  // namespace tactus::access
