#include "client/ask/simulated_tape.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "coordinator/tape/tape_reader.h"
#include "runtime/process.h"
#include "simulator/coordinator.h"

namespace tactus::client {

void SimulatedTape::Attach(simulator::Scenario* scenario) {
  scenario->on_start = [this](const simulator::TakenUp& taken_up, Instant now,
                              const job::Actions& actions) {
    Begin({.records = taken_up.jobs,
           .time = now,
           .actions = actions,
           .nodes = taken_up.nodes,
           .memories = taken_up.memories});
  };
  scenario->on_step = [this](const job::Event& event, Instant now, const job::Actions& actions) {
    if (!status_.ok()) return;
    Keep(lives_.back().Add(tape::Step{.event = event, .time = now, .actions = actions}));
  };
}

absl::Status SimulatedTape::Close() {
  EndLife();
  // What an earlier simulation with more lives left there would pass for this one's.
  for (std::size_t life = lives_.size() + 1; tape::TapeReader::Open(PathOf(life)).ok(); ++life) {
    std::error_code error;
    std::filesystem::remove(PathOf(life), error);
    if (error) Keep(runtime::FileError(error.value(), PathOf(life), "cannot be removed"));
  }
  return status_;
}

void SimulatedTape::EndLife() {
  if (!status_.ok() || lives_.empty()) return;
  full_ = full_ || lives_.back().ended();
  Keep(lives_.back().Close());
}

std::string SimulatedTape::PathOf(std::size_t life) const {
  return life == 1 ? path_ : path_ + "." + std::to_string(life);
}

void SimulatedTape::Begin(tape::Start start) {
  EndLife();
  if (!status_.ok()) return;
  absl::StatusOr<tape::TapeWriter> tape = tape::TapeWriter::Create(
      PathOf(lives_.size() + 1),
      {.program_version = TACTUS_VERSION, .wall_offset = simulator::Coordinator::kWallOffset},
      bytes_max_);
  if (!tape.ok()) return Keep(tape.status());
  lives_.push_back(*std::move(tape));
  Keep(lives_.back().Add(std::move(start)));
}

void SimulatedTape::Keep(const absl::Status& status) { status_.Update(status); }

}  // namespace tactus::client
