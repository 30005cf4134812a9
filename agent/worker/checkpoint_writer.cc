#include "agent/worker/checkpoint_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/worker/clock.h"

namespace tactus::worker {

void CheckpointWriter::Write(CheckpointedMessage facts) {
  message_ = std::move(facts);
  stage_ = Stage::kWriting;
  thread_.Begin([this] {
    message_ = WriteFile();
    stage_ = Stage::kDone;
  });
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Poll() {
  if (stage_ != Stage::kDone) return std::nullopt;
  stage_ = Stage::kIdle;
  return message_;
}

// Once the thread has done this, somebody else's file may be on it.
std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Wait() {
  if (stage_ == Stage::kWriting) thread_.Wait();
  return Poll();
}

std::optional<absl::StatusOr<CheckpointedMessage>> CheckpointWriter::Abandon() {
  stop_.request_stop();
  return Wait();
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
