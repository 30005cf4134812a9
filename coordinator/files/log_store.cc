#include "coordinator/files/log_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "runtime/process.h"

namespace tactus::service {
namespace {

// Jobs whose workers are remembered at once; others are read from their folders again.
constexpr std::size_t kOpenJobsMax = 64;
// A worker's file is never cut below this, however many workers share the job's bound.
constexpr std::uint64_t kFileBytesMin = 8u << 10;

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Number>
bool Parse(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && !text.empty();
}

// A piece as it stands in a file.
struct Record {
  std::uint64_t offset = 0;
  std::string_view text{};
};

// The record that `rest` begins with, taken off it; none when it is cut or no record.
std::optional<Record> TakeRecord(std::string_view& rest) {
  const std::size_t line_end = rest.find('\n');
  const std::size_t space = rest.substr(0, line_end).find(' ');
  Record record;
  std::size_t length = 0;
  if (line_end == rest.npos || space == rest.npos || rest.front() != '#' ||
      !Parse(rest.substr(1, space - 1), record.offset) ||
      !Parse(rest.substr(space + 1, line_end - space - 1), length) ||
      rest.size() - line_end - 1 < length) {
    return std::nullopt;
  }
  record.text = rest.substr(line_end + 1, length);
  rest.remove_prefix(line_end + 1 + length);
  return record;
}

// One past the last byte of the worker's output that a file holds; cuts off what is no record.
std::uint64_t Mend(const std::string& path) {
  const std::string content = ContentOf(path);
  std::string_view rest = content;
  std::uint64_t end = 0;
  while (const std::optional<Record> record = TakeRecord(rest)) {
    end = record->offset + record->text.size();
  }
  if (!rest.empty()) {
    [[maybe_unused]] const int cut =
        ::truncate(path.c_str(), static_cast<off_t>(content.size() - rest.size()));
  }
  return end;
}

std::uint64_t BytesOf(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

absl::Status AppendTo(const std::string& path, std::string_view bytes) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return runtime::FileError(errno, path, "cannot open");
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return runtime::FileError(errno, path, "cannot write");
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

// The worker of a file "worker-ID.log" or "worker-ID.log.1"; none for other names.
std::optional<WorkerId> WorkerOf(std::string_view name) {
  constexpr std::string_view kBegin = "worker-", kEnd = ".log", kOld = ".1";
  WorkerId worker;
  if (name.ends_with(kOld)) name.remove_suffix(kOld.size());
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return Parse(name, worker.value) ? std::optional(worker) : std::nullopt;
}

// True within a UTF-8 character: a text must not begin here.
bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

void AddTo(std::vector<LogPiece>& pieces, LogPiece piece) {
  if (!pieces.empty()) {
    LogPiece& last = pieces.back();
    if (last.offset + last.text.size() == piece.offset &&
        last.text.size() + piece.text.size() <= LogStore::kPieceBytesMax) {
      last.text += piece.text;
      return;
    }
  }
  pieces.push_back(std::move(piece));
}

}  // namespace

std::string LogStore::PathOf(const std::string& job, WorkerId worker) const {
  return FolderOf(job) + "/worker-" + std::to_string(worker.value) + ".log";
}

LogStore::Job& LogStore::Load(const std::string& name) {
  const auto [entry, fresh] = jobs_.try_emplace(name);
  entry->second.used = ++clock_;
  if (!fresh) return entry->second;
  ReadFolder(name, entry->second);
  if (jobs_.size() > kOpenJobsMax) {
    jobs_.erase(std::ranges::min_element(
        jobs_, {}, [](const auto& remembered) { return remembered.second.used; }));
  }
  return entry->second;
}

void LogStore::ReadFolder(const std::string& name, Job& job) const {
  for (const std::string& file : runtime::NamesIn(FolderOf(name))) {
    const std::optional<WorkerId> id = WorkerOf(file);
    if (id.has_value()) job.workers[*id] = {};
  }
  // After a crash either of a worker's two files may be there alone.
  for (auto& [id, worker] : job.workers) {
    const std::string path = PathOf(name, id);
    worker.end = Mend(path);
    if (worker.end == 0) worker.end = Mend(path + ".1");
    worker.bytes = BytesOf(path);
    worker.old_bytes = BytesOf(path + ".1");
    job.bytes += worker.bytes + worker.old_bytes;
  }
  std::ifstream ranks(FolderOf(name) + "/ranks");
  std::uint64_t id = 0;
  std::uint32_t rank = 0;
  while (ranks >> id >> rank) {
    const auto found = job.workers.find(WorkerId{id});
    if (found != job.workers.end()) found->second.rank = rank;
  }
}

// The worker's entry, made and written down with its rank where that is new.
absl::StatusOr<LogStore::Worker*> LogStore::Admit(const Source& source, Job& job) {
  const auto found = job.workers.find(source.worker);
  if (found != job.workers.end() && found->second.rank == source.rank) return &found->second;
  if (found == job.workers.end() && job.workers.size() >= limits_.workers) {
    const auto oldest = job.workers.begin();
    RemoveAll(PathOf(source.job, oldest->first), job, oldest->second);
    job.workers.erase(oldest);
  }
  std::error_code error;
  std::filesystem::create_directories(FolderOf(source.job), error);
  if (error) {
    return runtime::FileError(error.value(), FolderOf(source.job), "cannot create the folder");
  }
  const absl::Status written =
      AppendTo(FolderOf(source.job) + "/ranks",
               std::to_string(source.worker.value) + " " + std::to_string(source.rank) + "\n");
  if (!written.ok()) return written;
  Worker& worker = job.workers[source.worker];
  worker.rank = source.rank;
  return &worker;
}

absl::Status LogStore::Append(const Source& source, const LogPiece& piece) {
  if (piece.text.size() > kPieceBytesMax) {
    return absl::InvalidArgumentError("log_lines.text: found " + std::to_string(piece.text.size()) +
                                      " bytes, allowed are " + std::to_string(kPieceBytesMax));
  }
  Job& job = Load(source.job);
  const absl::StatusOr<Worker*> admitted = Admit(source, job);
  if (!admitted.ok()) return admitted.status();
  Worker& worker = **admitted;
  const std::uint64_t end = piece.offset + piece.text.size();
  if (end <= worker.end || end < piece.offset) return absl::OkStatus();
  const std::uint64_t begin = std::max(piece.offset, worker.end);
  const std::string_view text = std::string_view(piece.text).substr(begin - piece.offset);
  const std::string header = "#" + std::to_string(begin) + " " + std::to_string(text.size()) + "\n";
  const std::uint64_t share =
      std::clamp(limits_.job_bytes / (2 * job.workers.size()),
                 std::min(kFileBytesMin, limits_.file_bytes), limits_.file_bytes);
  if (worker.bytes > 0 && worker.bytes + header.size() + text.size() > share) {
    Rotate(source, job, worker);
  }
  const std::string path = PathOf(source.job, source.worker);
  const absl::Status status = AppendTo(path, header + std::string(text));
  if (!status.ok()) {
    // What was written of it must not stand between this piece and the next.
    [[maybe_unused]] const int cut = ::truncate(path.c_str(), static_cast<off_t>(worker.bytes));
    return status;
  }
  worker.bytes += header.size() + text.size();
  job.bytes += header.size() + text.size();
  worker.end = end;
  MakeRoom(source.job, job);
  for (const auto& [key, listener] : listeners_) {
    if (listener.job == source.job) listener.changed();
  }
  return absl::OkStatus();
}

void LogStore::Rotate(const Source& source, Job& job, Worker& worker) const {
  const std::string path = PathOf(source.job, source.worker);
  if (std::rename(path.c_str(), (path + ".1").c_str()) != 0) return;
  job.bytes -= worker.old_bytes;
  worker.old_bytes = std::exchange(worker.bytes, 0);
}

void LogStore::MakeRoom(const std::string& name, Job& job) const {
  while (job.bytes > limits_.job_bytes) {
    const auto most = std::ranges::max_element(job.workers, {}, [](const auto& entry) {
      return entry.second.bytes + entry.second.old_bytes;
    });
    const std::string path = PathOf(name, most->first);
    if (most->second.old_bytes > 0) {
      RemoveOld(path, job, most->second);
    } else {
      RemoveAll(path, job, most->second);
    }
  }
}

void LogStore::RemoveOld(const std::string& path, Job& job, Worker& worker) const {
  ::unlink((path + ".1").c_str());
  job.bytes -= std::exchange(worker.old_bytes, 0);
}

void LogStore::RemoveAll(const std::string& path, Job& job, Worker& worker) const {
  RemoveOld(path, job, worker);
  ::unlink(path.c_str());
  job.bytes -= std::exchange(worker.bytes, 0);
}

std::vector<LoggedWorker> LogStore::Workers(const std::string& job) {
  std::vector<LoggedWorker> workers;
  for (const auto& [id, worker] : Load(job).workers) {
    workers.push_back({.worker = id, .rank = worker.rank, .end = worker.end});
  }
  return workers;
}

std::vector<LogPiece> LogStore::Read(const std::string& job, WorkerId worker,
                                     std::uint64_t offset) const {
  std::vector<LogPiece> pieces;
  const std::string path = PathOf(job, worker);
  for (const std::string& file : {path + ".1", path}) {
    const std::string content = ContentOf(file);
    std::string_view rest = content;
    while (const std::optional<Record> record = TakeRecord(rest)) {
      std::uint64_t known = offset > record->offset ? offset - record->offset : 0;
      while (known < record->text.size() && ContinuesCharacter(record->text[known])) ++known;
      if (known >= record->text.size()) continue;
      AddTo(pieces,
            {.offset = record->offset + known, .text = std::string(record->text.substr(known))});
    }
  }
  return pieces;
}

void LogStore::Forget(const std::string& job) {
  jobs_.erase(job);
  std::error_code ignored;
  std::filesystem::remove_all(FolderOf(job), ignored);
}

bool LogStore::Listen(const std::string& job, const void* key, std::function<void()> changed) {
  if (listeners_.size() >= kListenersMax) return false;
  listeners_[key] = {.job = job, .changed = std::move(changed)};
  return true;
}

void LogStore::Unlisten(const void* key) { listeners_.erase(key); }

void LogStore::Close() {
  closed_ = true;
  for (const auto& [key, listener] : listeners_) listener.changed();
}

}  // namespace tactus::service
