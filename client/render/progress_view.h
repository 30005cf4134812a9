// A job's events as text: a block that is redrawn in place, plain lines, or JSON lines. Pure:
// events and instants in, text out.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

struct ProgressViewOptions {
  enum class Style {
    kLines,  // a line every `line_interval`, and one for each decision, change of state and
             // validation, of several within a progress the newest
    kBlock,  // for a terminal: those about decisions and states scroll, the rest is redrawn below
             // them
    kJson,   // one object an event, in proto3 JSON with the schema's field names
  };
  Style style = Style::kLines;
  bool colour = false;                  // kBlock only
  Duration line_interval = Seconds(5);  // kLines only
};

// Remembers what was shown. Not thread-safe.
class ProgressView {
 public:
  explicit ProgressView(const ProgressViewOptions& options) : options_(options) {}

  // What to print for `event`, which arrived at `now`, on a terminal of `columns` columns (>= 20;
  // used by kBlock alone). May be empty.
  std::string Show(const v1::JobEvent& event, Instant now, std::size_t columns = 80);

  // The block as it stands remains on the terminal, and the next output begins below it.
  void Leave() { block_lines_ = 0; }

 private:
  std::string ShowJob(const v1::Job& job);
  std::string ShowDecision(const v1::Plan& plan);
  std::string ShowProgress(const v1::JobProgress& progress, Instant now);
  std::string ShowValidation(const v1::ValidationProgress& validation);
  std::string Redraw(const std::string& above, std::size_t columns);
  std::string WorkerLine(const v1::WorkerProgress& worker, double speed_max) const;
  std::string Coloured(const std::string& text, const char* code) const;

  const ProgressViewOptions options_;
  std::string name_;
  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  std::string state_reason_;
  v1::JobProgress progress_;
  std::vector<std::uint32_t> batch_sizes_;  // of the newest plan shown, as the rest
  std::vector<std::string> choices_;
  std::uint64_t plan_version_ = 0;
  std::uint64_t validations_ = 0;  // made before the newest that was shown, and this one
  bool line_shown_ = false;
  Instant line_time_{};          // of the last line shown
  std::size_t block_lines_ = 0;  // of the block on the terminal
};

// "running" of JOB_STATE_RUNNING.
std::string StateName(v1::JobState state);

// True for the states that no job leaves.
bool IsOver(v1::JobState state);

// A message on one line in proto3 JSON with the schema's field names; numbers that are zero are
// written.
std::string JsonLine(const google::protobuf::Message& message);

// The seconds and nanoseconds of a protobuf duration.
Duration FromProto(const google::protobuf::Duration& duration);

}  // namespace tactus::client
