// Keeps the tape of a running coordinator, off the thread that decides.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"
#include "coordinator/tape/frames.h"
#include "coordinator/tape/tape_writer.h"
#include "runtime/control_thread.h"

namespace tactus::tape {

// Takes frames on the control thread, encodes and writes them on the storage thread: one write at a
// time, of all that came until then. A tape that cannot be written is given up with a warning, and
// one whose writer falls kPendingBytesMax behind ends; whoever calls goes on without.
class TapeRecorder {
 public:
  // Of memory that frames hold while they wait. A frame of one report holds some 1 KiB, one of a
  // plan for 1,000 workers 4 MiB; the last one may go beyond.
  static constexpr std::size_t kPendingBytesMax = std::size_t{64} << 20;

  struct Options {
    std::string folder{};                                 // as for MakeTapePath
    std::uint64_t bytes_max = TapeWriter::kBytesDefault;  // >= TapeWriter::kBytesMin; 0: no tape
    // How long a frame waits for others: a write each would wake two threads for every event, and a
    // process that is killed loses what waits.
    Duration gather = std::chrono::milliseconds(100);
  };
  // Both outlive the recorder, and are stopped before it is destroyed.
  struct Threads {
    runtime::ControlThread& control;
    runtime::ControlThread& storage;
  };

  TapeRecorder(const Options& options, Header header, const Threads& threads);

  // The following on the control thread.

  // False: no tape, or no more. To spare the copies that a frame needs.
  bool recording() const { return recording_; }

  // The start, then the steps in their order.
  void Add(Frame frame);

  // The last frame was added. The storage thread still has to run what it has.
  void Finish();

 private:
  void PlanWrite();
  void StartWrite();
  absl::Status Write(const std::vector<Frame>& frames);
  absl::Status Open();
  void End(EndReason reason);
  void OnWritten(const absl::Status& status, bool ended);

  const Options options_;
  const Header header_;
  const Threads threads_;
  bool recording_ = false;
  bool writing_ = false;  // a write is planned or runs
  std::vector<Frame> pending_;
  std::size_t pending_bytes_ = 0;        // that they hold
  std::optional<runtime::Timer> timer_;  // empty before the first frame

  std::optional<TapeWriter> tape_;  // storage thread; empty before the first write
};

}  // namespace tactus::tape
