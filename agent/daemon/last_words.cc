#include "agent/daemon/last_words.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/daemon/worker_messages.h"
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

// The store's id and a message, each on a line of its own.
absl::StatusOr<LastWords> Read(const std::string& jobs, const std::string& job, WorkerId worker) {
  LastWords words{.job = job, .worker = worker};
  std::ifstream in(PathOf(jobs, job, worker));
  std::getline(in, words.server);
  for (std::string line; std::getline(in, line);) {
    absl::StatusOr<tactus::v1::FromWorker> message = ParseFromWorker(line);
    if (!message.ok()) return message.status();
    words.messages.push_back(*std::move(message));
  }
  const bool whole = !words.messages.empty() && words.messages.back().has_finished();
  if (!whole) return absl::DataLossError("no last word");
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
      absl::StatusOr<LastWords> words = Read(jobs, job, *worker);
      if (words.ok()) {
        kept.push_back(*std::move(words));
        continue;
      }
      runtime::Logger("agent")->warn("last words not readable worker={} job={} reason={}",
                                     worker->value, job,
                                     runtime::Quoted(std::string(words.status().message())));
      RemoveLastWords(jobs, job, *worker);
    }
  }
  return kept;
}

void RemoveLastWords(const std::string& jobs, const std::string& job, WorkerId worker) {
  ::unlink(PathOf(jobs, job, worker).c_str());
}

}  // namespace tactus::agent
