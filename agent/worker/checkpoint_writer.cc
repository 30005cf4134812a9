#include "agent/worker/checkpoint_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/worker/clock.h"

namespace tactus::worker {

using threads::MutexLock;

CheckpointWriter::CheckpointWriter(std::string directory, cuda::SegmentTable segments)
    : directory_(std::move(directory)),
      segments_(std::move(segments)),
      thread_([this] { Run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  stop_.request_stop();
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool CheckpointWriter::idle() {
  const MutexLock lock(mutex_);
  return stage_ == Stage::kIdle;
}

void CheckpointWriter::Write(CheckpointedMessage facts) {
  message_ = std::move(facts);
  {
    const MutexLock lock(mutex_);
    stage_ = Stage::kWriting;
  }
  changed_.NotifyAll();
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::TakeDone() {
  if (stage_ != Stage::kDone) return std::nullopt;
  stage_ = Stage::kIdle;
  return message_;
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Poll() {
  const MutexLock lock(mutex_);
  return TakeDone();
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Wait() {
  const MutexLock lock(mutex_);
  while (stage_ == Stage::kWriting) changed_.Wait(mutex_);
  return TakeDone();
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Abandon() {
  stop_.request_stop();
  return Wait();
}

void CheckpointWriter::Run() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (stage_ != Stage::kWriting && !closing_) changed_.Wait(mutex_);
      if (stage_ != Stage::kWriting) return;
    }
    message_ = WriteFile();
    {
      const MutexLock lock(mutex_);
      stage_ = Stage::kDone;
    }
    changed_.NotifyAll();
  }
}

absl::StatusOr<CheckpointedMessage> CheckpointWriter::WriteFile() {
  const Instant begin = Now();
  CheckpointedMessage message = *message_;
  message.file = protocol::CheckpointFileOf(message);
  std::error_code ignored;  // the file's own error says it better
  std::filesystem::create_directories(directory_ + "/" + protocol::kCheckpointFolder, ignored);
  const std::string path = directory_ + "/" + message.file;
  const std::stop_token stop = stop_.get_token();
  if (absl::Status s = WriteCheckpoint(checkpoint_, segments_, path, stop); !s.ok()) return s;
  if (absl::Status s = CheckCheckpoint(path, stop); !s.ok()) {
    std::filesystem::remove(path, ignored);
    return s;
  }
  message.write_seconds = ToSeconds(Now() - begin);
  return message;
}

}  // namespace tactus::worker
