#include "agent/daemon/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/daemon/worker_messages.h"
#include "base/descriptor.h"
#include "runtime/logging.h"
#include "runtime/process.h"

namespace tactus::agent {
namespace {

constexpr std::string_view kPrefix = "last-words-";

std::string PathOf(const std::string& jobs, const std::string& job, WorkerId worker) {
  return jobs + "/" + job + "/" + std::string(kPrefix) + std::to_string(worker.value);
}

// Nothing: it is none of these files.
std::optional<WorkerId> WorkerOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  WorkerId worker;
  const auto end = std::from_chars(name.data(), name.data() + name.size(), worker.value);
  const bool whole = end.ec == std::errc() && end.ptr == name.data() + name.size();
  return whole ? std::optional(worker) : std::nullopt;
}

absl::StatusOr<std::string> ContentOf(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return runtime::FileError(errno, path, "cannot open");
  std::string content;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return runtime::FileError(errno, path, "cannot read");
    if (count == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// The store's id and a message, each on a line of its own. Nothing: it is no such file.
std::optional<LastWords> Parse(const std::string& content) {
  LastWords words;
  std::istringstream in(content);
  std::getline(in, words.server);
  for (std::string line; std::getline(in, line);) {
    absl::StatusOr<tactus::v1::FromWorker> message = ParseFromWorker(line);
    if (!message.ok()) return std::nullopt;
    words.messages.push_back(*std::move(message));
  }
  const bool whole = !words.messages.empty() && words.messages.back().has_finished();
  return whole ? std::optional(std::move(words)) : std::nullopt;
}

// Only what was read can be told to be of no use: the disk may give the rest back another time.
std::optional<LastWords> Take(const std::string& jobs, const std::string& job, WorkerId worker) {
  const absl::StatusOr<std::string> content = ContentOf(PathOf(jobs, job, worker));
  if (!content.ok()) {
    runtime::Logger("agent")->warn("last words not readable worker={} job={} reason={}",
                                   worker.value, job,
                                   runtime::Quoted(std::string(content.status().message())));
    return std::nullopt;
  }
  std::optional<LastWords> words = Parse(*content);
  if (words) {
    words->job = job;
    words->worker = worker;
  } else {
    runtime::Logger("agent")->warn("last words of no use, removed worker={} job={}", worker.value,
                                   job);
    RemoveLastWords(jobs, job, worker);
  }
  return words;
}

}  // namespace

absl::Status KeepLastWords(const std::string& jobs, const LastWords& words) {
  std::string content = words.server + "\n";
  for (const tactus::v1::FromWorker& message : words.messages) {
    const absl::StatusOr<std::string> line = FormatFromWorker(message);
    if (!line.ok()) return line.status();
    content += *line + "\n";
  }
  return runtime::WriteFileWhole(PathOf(jobs, words.job, words.worker), content);
}

std::vector<LastWords> KeptLastWords(const std::string& jobs) {
  std::vector<LastWords> kept;
  for (const std::string& job : runtime::NamesIn(jobs)) {
    if (job.starts_with('.')) continue;
    for (const std::string& name : runtime::NamesIn(jobs + "/" + job)) {
      const std::optional<WorkerId> worker = WorkerOf(name);
      if (!worker) continue;
      if (std::optional<LastWords> words = Take(jobs, job, *worker)) {
        kept.push_back(*std::move(words));
      }
    }
  }
  return kept;
}

void RemoveLastWords(const std::string& jobs, const std::string& job, WorkerId worker) {
  ::unlink(PathOf(jobs, job, worker).c_str());
}

}  // namespace tactus::agent
