// Drives a fresh core with the events of a tape and compares all that it answers.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/tape/difference.h"
#include "coordinator/tape/frames.h"

namespace tactus::tape {

struct ReplayOptions {
  bool allow_cut = false;  // replay what is whole of a tape that is cut after its start
};

// A core that answered otherwise than the tape says.
struct ReplayDifference {
  std::uint64_t event = 0;  // its number, from 1; 0: the start
  Duration time{};          // since the start
  std::string words{};      // the event: "worker_said, worker 3, report of round 12"
  Difference difference{};
};

// What a tape holds, up to the difference if there is one.
struct Replayed {
  Header header{};
  std::uint64_t events = 0;
  std::uint64_t actions = 0;
  std::uint64_t jobs = 0;           // taken up or submitted
  std::uint64_t rounds = 0;         // persisted
  std::uint64_t plans_adopted = 0;  // after the first of each job
  Duration length{};                // from the start to the last event
  std::optional<EndReason> end{};   // empty: cut, or different
  std::optional<ReplayDifference> difference{};
};

// Trusts what has the right checksums: a tape that no program of ours wrote may end the process;
// docs/decisions/0006-tape.md says why.
// Errors: as TapeReader::Open and Next; OutOfRange does not come after the start when a cut is
// allowed.
absl::StatusOr<Replayed> Replay(const std::string& path, const ReplayOptions& options);

}  // namespace tactus::tape
