#include "coordinator/service/logs_call.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/files/log_position.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/stream_header.h"

namespace tactus::service {
namespace {

// How often a stream that waits looks whether its job is over.
constexpr Duration kLookInterval = Seconds(1);
constexpr std::uint32_t kTailLinesMax = 1'000'000;
constexpr int kRanksMax = 4096;

// Leaves of the pieces what makes up their last `lines` lines.
void KeepTail(std::uint32_t lines, std::vector<LogPiece>& pieces) {
  std::uint32_t seen = 0;
  bool at_end = true;  // the newline that ends the last line begins no other
  for (std::size_t i = pieces.size(); i-- > 0;) {
    std::string& text = pieces[i].text;
    for (std::size_t c = text.size(); c-- > 0; at_end = false) {
      if (text[c] != '\n' || at_end || ++seen < lines) continue;
      pieces[i].offset += c + 1;
      text.erase(0, c + 1);
      pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

// All but gRPC's reactions runs on the files' thread.
class LogsCall final : public OwnedCall<LogsCall, grpc::ServerWriteReactor<v1::LogEntry>> {
 public:
  LogsCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
           const v1::StreamLogsRequest& request)
      : OwnedCall(context, surroundings.door, "Jobs/StreamLogs"),
        around_(surroundings),
        context_(context),
        request_(request) {}

  void Start() {
    around_.files.Post([self = Hold()] { self->Check(); });
  }

  void OnWriteDone(bool ok) override {
    around_.files.Post([self = shared_from_this(), ok] {
      self->writing_ = false;
      ok ? self->Pump() : self->End(absl::CancelledError("logs: the caller left"));
    });
  }

  void OnCancel() override {
    around_.files.Post([self = shared_from_this()] {
      // A write that is under way comes back as not ok and ends the call.
      if (!self->writing_) self->End(absl::CancelledError("logs: the caller left"));
    });
  }

 private:
  struct Waiting {
    LoggedWorker source{};
    LogPiece piece{};
  };

  void Check() {
    if (!visit().admitted().ok()) return End(visit().admitted());
    const absl::StatusOr<std::string> id = ParseJobName("name", request_.name());
    if (!id.ok()) return End(id.status());
    id_ = *id;
    if (request_.ranks_size() > kRanksMax) {
      return End(
          runtime::InvalidFields({{.field = "ranks",
                                   .description = "found " + std::to_string(request_.ranks_size()) +
                                                  ", allowed are " + std::to_string(kRanksMax)}}));
    }
    if (request_.tail_lines() > kTailLinesMax) {
      return End(runtime::InvalidFields(
          {{.field = "tail_lines",
            .description = "found " + std::to_string(request_.tail_lines()) + ", allowed are " +
                           std::to_string(kTailLinesMax)}}));
    }
    ranks_.insert(request_.ranks().begin(), request_.ranks().end());
    Look();
  }

  // Asks whether the job is over.
  void Look() {
    around_.core.FindJob(
        id_, [self = shared_from_this()](const absl::StatusOr<job::JobRecord>& record) {
          const bool over = record.ok() && job::IsFinal(record->state);
          self->around_.files.Post(
              [self, status = record.status(), over] { self->OnLooked(status, over); });
        });
  }

  void OnLooked(const absl::Status& status, bool over) {
    if (finished_) return;
    if (!status.ok()) return End(status);
    // The last lines of the workers may come after the end of their job: once more is waited.
    settled_ = !request_.follow() || (opened_ && over_);
    over_ = over;
    if (!opened_ && !Open()) return;
    Pump();
    if (!finished_ && !settled_) {
      timer_->After(kLookInterval, [self = weak_from_this()] {
        if (const auto alive = self.lock()) alive->Look();
      });
    }
  }

  bool Open() {
    opened_ = true;
    absl::StatusOr<LogPosition> position = LogPosition();
    if (!request_.resume_token().empty()) position = FromToken(id_, request_.resume_token());
    if (!position.ok()) {
      End(position.status());
      return false;
    }
    position_ = *std::move(position);
    if (request_.resume_token().empty() && request_.tail_lines() > 0) SkipToTail();
    if (!request_.follow()) return true;
    timer_.emplace(around_.files);
    const bool listens = around_.logs.Listen(id_, this, [self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->OnChanged();
    });
    if (!listens) {
      End(absl::ResourceExhaustedError("logs: " + std::to_string(LogStore::kListenersMax) +
                                       " streams wait for more; try again later"));
      return false;
    }
    if (!around_.logs.closed()) SayOpen();
    return true;
  }

  // Tells the caller that the stream is open, since nothing may come of it for long.
  void SayOpen() {
    context_->AddInitialMetadata(runtime::kStreamHeader, runtime::kStreamOpen);
    StartSendInitialMetadata();
  }

  // Begins with the last lines of each rank's newest worker.
  void SkipToTail() {
    std::map<std::uint32_t, WorkerId> newest;
    for (const LoggedWorker& worker : around_.logs.Workers(id_)) {
      position_[worker.worker] = worker.end;
      newest[worker.rank] = worker.worker;
    }
    for (const auto& [rank, worker] : newest) {
      if (!Wanted(rank)) continue;
      std::vector<LogPiece> pieces = around_.logs.Read(id_, worker, 0);
      KeepTail(request_.tail_lines(), pieces);
      if (!pieces.empty()) position_[worker] = pieces.front().offset;
    }
  }

  bool Wanted(std::uint32_t rank) const { return ranks_.empty() || ranks_.contains(rank); }

  // Within LogStore::Append, so the rest is left for later.
  void OnChanged() {
    if (std::exchange(woken_, true)) return;
    around_.files.Post([self = shared_from_this()] {
      self->woken_ = false;
      self->Pump();
    });
  }

  void Pump() {
    if (writing_ || finished_ || !opened_) return;
    if (around_.logs.closed()) return End(absl::UnavailableError("coordinator: is stopping"));
    if (waiting_.empty()) Fill();
    if (!waiting_.empty()) return WriteNext();
    if (settled_) End(absl::OkStatus());
  }

  // Takes what is new of the first worker that has something.
  void Fill() {
    for (const LoggedWorker& worker : around_.logs.Workers(id_)) {
      std::uint64_t& position = position_[worker.worker];
      if (!Wanted(worker.rank) || worker.end <= position) continue;
      for (LogPiece& piece : around_.logs.Read(id_, worker.worker, position)) {
        waiting_.push_back({.source = worker, .piece = std::move(piece)});
      }
      if (!waiting_.empty()) return;
      position = worker.end;
    }
  }

  void WriteNext() {
    const absl::Status still = visit().Still();
    if (!still.ok()) return End(still);
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    std::uint64_t& position = position_[next.source.worker];
    entry_.Clear();
    entry_.set_rank(next.source.rank);
    entry_.set_worker_id(next.source.worker.value);
    if (next.piece.offset > position) entry_.set_skipped_bytes(next.piece.offset - position);
    position = next.piece.offset + next.piece.text.size();
    entry_.set_text(next.piece.text);
    entry_.set_resume_token(ToToken(id_, position_));
    writing_ = true;
    StartWrite(&entry_);
  }

  void End(const absl::Status& status) {
    if (std::exchange(finished_, true)) return;
    around_.logs.Unlisten(this);
    timer_.reset();
    waiting_.clear();
    FinishWith(status);
  }

  const FileSurroundings around_;
  grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone
  const v1::StreamLogsRequest request_;
  // Files' thread:
  std::string id_;
  std::set<std::uint32_t> ranks_;  // empty: all
  LogPosition position_;
  std::deque<Waiting> waiting_;  // of one worker: at most what is kept of it
  std::optional<runtime::Timer> timer_;
  bool opened_ = false;
  bool over_ = false;     // the job is
  bool settled_ = false;  // nothing more is waited for
  bool woken_ = false;
  bool writing_ = false;
  bool finished_ = false;
  v1::LogEntry entry_;  // gRPC reads it while writing_
};

}  // namespace

grpc::ServerWriteReactor<v1::LogEntry>* StartLogs(const FileSurroundings& surroundings,
                                                  grpc::CallbackServerContext* context,
                                                  const v1::StreamLogsRequest& request) {
  const auto call = std::make_shared<LogsCall>(surroundings, context, request);
  call->Start();
  return call.get();
}

}  // namespace tactus::service
