#include "agent/worker/snapshots.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "protocol/worker_messages.h"

namespace tactus::worker {
namespace {

std::string NameOf(Duration trained) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%.3f.safetensors", ToSeconds(trained));
  return std::string(protocol::kSnapshotFolder) + name.data();
}

}  // namespace

Snapshots::~Snapshots() {
  stop_.request_stop();
  WaitForOwn();
  if (!absl::IsCancelled(written_)) NoteWritten();
}

void Snapshots::AtEdge(const Copy& copy, Duration trained) {
  // The thread may be at work for others by now.
  if (written_out_) NoteWritten();
  if (!every_ || trained < due_ || names_.size() == protocol::kSnapshotsMax) return;
  if (writing_ || !thread_.idle()) return;
  while (due_ <= trained) due_ += *every_;
  if (absl::Status s = copy(copy_); !s.ok()) return Stop(s);
  name_ = NameOf(trained);
  writing_ = true;
  written_out_ = false;
  thread_.Begin([this] {
    std::error_code ignored;  // the file's own error says it better
    std::filesystem::create_directories(directory_ + "/" + protocol::kSnapshotFolder, ignored);
    written_ =
        tensors::WriteSafetensors(directory_ + "/" + name_, copy_.tensors, {}, stop_.get_token());
    written_out_ = true;
  });
}

std::vector<std::string> Snapshots::Finish() {
  WaitForOwn();
  NoteWritten();
  every_.reset();
  copy_ = {};
  return names_;
}

// Once the thread has done this, somebody else's file may be on it.
void Snapshots::WaitForOwn() {
  if (writing_ && !written_out_) thread_.Wait();
}

void Snapshots::NoteWritten() {
  if (!std::exchange(writing_, false)) return;
  if (!written_.ok()) return Stop(written_);
  names_.push_back(name_);
  if (taken_) taken_(name_);
}

void Snapshots::Stop(const absl::Status& why) {
  every_.reset();
  std::cerr << "no further snapshots: " << why.message() << '\n';
}

}  // namespace tactus::worker
