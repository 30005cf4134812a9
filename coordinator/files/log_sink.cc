#include "coordinator/files/log_sink.h"

#include <algorithm>
#include <utility>

#include "coordinator/shell/job_conversion.h"
#include "runtime/logging.h"

namespace tactus::service {
namespace {

constexpr std::size_t kWritersJobsMax = 1024;

}  // namespace

void LogSink::Take(const std::string& node, const agent::v1::LogLines& lines) {
  const absl::StatusOr<std::string> id = ParseJobName("log_lines.job_id", lines.job_id());
  const WorkerId worker{lines.worker_id()};
  const std::size_t bytes = lines.text().size();
  if (!id.ok() || bytes == 0 || bytes > LogStore::kPieceBytesMax) return;
  const Writer* const writer = Find(*id, worker);
  if (writer == nullptr || writer->node != node) return;
  if (waiting_bytes_ + bytes > kWaitingBytesMax) {
    if (dropped_bytes_ == 0) {
      runtime::Logger("logs")->warn("workers' output dropped, the disk is too slow job={}", *id);
    }
    dropped_bytes_ += bytes;
    return;
  }
  waiting_bytes_ += bytes;
  LogStore::Source source = {.job = *id, .worker = worker, .rank = writer->rank};
  LogPiece piece = {.offset = lines.offset(), .text = lines.text()};
  around_.files.Post([this, source = std::move(source), piece = std::move(piece), bytes] {
    const absl::Status status = around_.logs.Append(source, piece);
    if (!status.ok()) {
      runtime::Logger("logs")->debug("workers' output lost job={} error={}", source.job,
                                     runtime::Quoted(std::string(status.message())));
    }
    waiting_bytes_ -= bytes;
  });
}

const LogSink::Writer* LogSink::Find(const std::string& job, WorkerId worker) {
  if (const job::JobRecord* record = around_.find(job)) Learn(*record);
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return nullptr;
  known->second.used = ++clock_;
  const auto writer = known->second.writers.find(worker);
  return writer == known->second.writers.end() ? nullptr : &writer->second;
}

// Takes the members over; those of the group before stay, for what they had still to say.
void LogSink::Learn(const job::JobRecord& record) {
  Known& known = jobs_[record.name];
  known.used = ++clock_;
  if (jobs_.size() > kWritersJobsMax) {
    jobs_.erase(
        std::ranges::min_element(jobs_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  if (known.revision == record.revision && known.generation == record.generation) return;
  known.revision = record.revision;
  known.generation = record.generation;
  if (known.writers.size() > 2 * LogStore::Limits{}.workers) known.writers.clear();
  for (std::size_t rank = 0; rank < record.members.size(); ++rank) {
    known.writers[record.members[rank].worker] = {.node = record.members[rank].node,
                                                  .rank = static_cast<std::uint32_t>(rank)};
  }
}

}  // namespace tactus::service
