// The curves of a worker, without which training goes on.

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/worker/training_curves.h"

namespace tactus::worker {

// Of rank 0, as long as they can be written: the first error is told on stderr, and ends them. One
// thread.
class DrawnCurves {
 public:
  // As TrainingCurves::Open. Where they are open it does nothing.
  void Open(const std::string& output_directory, const std::string& job_text);
  // Another member goes on, in a file of its own.
  void Close() { curves_.reset(); }

  // As TrainingCurves has them; nothing, where none are open.
  void Add(const policies::Report& report, const policies::Plan& plan, Duration trained);
  void AddValidation(const protocol::ValidatedMessage& message);

  // The file that was written, in the output directory.
  std::optional<std::string> name() const;

 private:
  void Follow(const absl::Status& drawn);

  std::optional<TrainingCurves> curves_;
};

}  // namespace tactus::worker
