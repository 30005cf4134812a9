#include "client/simulated_tape.h"

#include <utility>

#include "simulator/coordinator.h"

namespace tactus::client {

void SimulatedTape::Attach(simulator::Scenario* scenario) {
  scenario->on_start = [this](const std::vector<job::JobRecord>& restored, Instant now,
                              const job::Actions& actions) {
    Begin({.records = restored, .time = now, .actions = actions});
  };
  scenario->on_step = [this](const job::Event& event, Instant now, const job::Actions& actions) {
    if (!status_.ok()) return;
    Keep(lives_.back().Add(tape::Step{.event = event, .time = now, .actions = actions}));
  };
}

absl::Status SimulatedTape::Close() {
  if (status_.ok() && !lives_.empty()) Keep(lives_.back().Close());
  return status_;
}

void SimulatedTape::Begin(tape::Start start) {
  if (!Close().ok()) return;
  const std::string suffix = lives_.empty() ? "" : "." + std::to_string(lives_.size() + 1);
  absl::StatusOr<tape::TapeWriter> tape = tape::TapeWriter::Create(
      path_ + suffix,
      {.program_version = TACTUS_VERSION, .wall_offset = simulator::Coordinator::kWallOffset});
  if (!tape.ok()) return Keep(tape.status());
  lives_.push_back(*std::move(tape));
  Keep(lives_.back().Add(std::move(start)));
}

void SimulatedTape::Keep(const absl::Status& status) { status_.Update(status); }

}  // namespace tactus::client
