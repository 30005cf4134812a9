#include "coordinator/tape/tape_recorder.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "coordinator/tape/held_bytes.h"
#include "coordinator/tape/tape_folder.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::tape {

TapeRecorder::TapeRecorder(const Options& options, Header header, const Threads& threads)
    : options_(options),
      header_(std::move(header)),
      threads_(threads),
      recording_(options.bytes_max > 0) {}

void TapeRecorder::Add(Frame frame) {
  if (!recording_) return;
  if (pending_bytes_ >= kPendingBytesMax) {
    runtime::Logger("tape")->warn("tape ended, its writer fell behind frames={} bytes={}",
                                  pending_.size(), pending_bytes_);
    return End(EndReason::kFull);
  }
  pending_bytes_ += HeldBytes(frame);
  pending_.push_back(std::move(frame));
  if (!writing_) PlanWrite();
}

void TapeRecorder::Finish() {
  if (recording_) End(EndReason::kClean);
}

void TapeRecorder::PlanWrite() {
  writing_ = true;
  if (!timer_) timer_.emplace(threads_.control);
  timer_->After(options_.gather, [this] {
    if (recording_) StartWrite();
  });
}

void TapeRecorder::StartWrite() {
  pending_bytes_ = 0;
  threads_.storage.Post([this, frames = std::exchange(pending_, {})] {
    const absl::Status status = Write(frames);
    const bool ended = tape_ && tape_->ended();
    threads_.control.Post([this, status, ended] { OnWritten(status, ended); });
  });
}

absl::Status TapeRecorder::Write(const std::vector<Frame>& frames) {
  absl::Status status = tape_ ? absl::OkStatus() : Open();
  for (const Frame& frame : frames) {
    if (status.ok()) status = tape_->Add(frame);
  }
  return status.ok() ? tape_->Flush() : status;
}

absl::Status TapeRecorder::Open() {
  const absl::StatusOr<std::string> path = MakeTapePath(options_.folder, runtime::WallNow());
  if (!path.ok()) return path.status();
  absl::StatusOr<TapeWriter> tape = TapeWriter::Create(*path, header_, options_.bytes_max);
  if (!tape.ok()) return tape.status();
  tape_.emplace(*std::move(tape));
  return absl::OkStatus();
}

// After the write that runs, if one does; its answer then finds that the tape has ended.
void TapeRecorder::End(EndReason reason) {
  recording_ = false;
  threads_.storage.Post([this, reason, frames = std::exchange(pending_, {})] {
    // Nothing was ever recorded: that leaves no file.
    if (!tape_ && frames.empty()) return;
    absl::Status status = Write(frames);
    if (status.ok()) status = tape_->Close(reason);
    if (!status.ok()) {
      runtime::Logger("tape")->warn("tape not ended error={}", runtime::Quoted(status.ToString()));
    }
  });
}

void TapeRecorder::OnWritten(const absl::Status& status, bool ended) {
  writing_ = false;
  if (!recording_) return;
  if (status.ok() && !ended) {
    // What came during the write did not plan one: writes go one at a time.
    if (!pending_.empty()) PlanWrite();
    return;
  }
  recording_ = false;
  pending_.clear();
  if (status.ok()) {
    runtime::Logger("tape")->info("tape full bytes_max={}", options_.bytes_max);
  } else {
    runtime::Logger("tape")->warn("tape given up error={}", runtime::Quoted(status.ToString()));
  }
}

}  // namespace tactus::tape
