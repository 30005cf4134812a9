// Copies of the parameters while a job trains: snapshots/SECONDS.safetensors.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/tensors/safetensors.h"
#include "agent/worker/writer_thread.h"
#include "base/time.h"

namespace tactus::worker {

// Copied at a round's edge and written beside training, which stands still for the copy alone.
// There is one copy, whose memory is used again: one that is due while the thread writes is taken
// at the first edge after that. The training thread.
class Snapshots {
 public:
  struct Options {
    std::string directory{};          // of the job's output
    std::optional<Duration> every{};  // of training, > 0; nothing: none are made
    // One is whole: its name in `directory`. Called by the training thread.
    std::function<void(const std::string& name)> taken{};
  };

  // The thread outlives this.
  Snapshots(Options options, WriterThread& thread)
      : every_(options.every),
        directory_(std::move(options.directory)),
        taken_(std::move(options.taken)),
        thread_(thread) {}
  // What is being written is given up, within the time that the disk takes for a piece of a file,
  // and said where it is whole all the same; so is why it is not, where that has another reason.
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // To be called at rounds' edges, where parameters are equal on all members, and after who is to
  // have the thread first. trained: so far. The first file that cannot be written is the last, and
  // that is said in the log: a full disk must not fail again every so often.
  // copy: what a snapshot is of, into memory.
  using Copy = std::function<absl::Status(tensors::TensorsCopy& copy)>;
  void AtEdge(const Copy& copy, Duration trained);

  // None are made from now on, and the copy's memory is free. Waits for the one that is being
  // written, for nobody else's file. Returns the names of those that are there, in the output
  // directory.
  std::vector<std::string> Finish();

 private:
  void Stop(const absl::Status& why);
  void NoteWritten();
  void WaitForOwn();

  std::optional<Duration> every_;
  const std::string directory_;
  const std::function<void(const std::string& name)> taken_;
  WriterThread& thread_;
  Duration due_{};  // the first at the first edge
  std::vector<std::string> names_;
  std::stop_source stop_;
  bool writing_ = false;  // what came of it is not noted yet

  std::atomic<bool> written_out_ = false;  // by the thread, when it has done all of it

  // The thread's while it writes, the caller's otherwise.
  tensors::TensorsCopy copy_;
  std::string name_;
  absl::Status written_;
};

}  // namespace tactus::worker
