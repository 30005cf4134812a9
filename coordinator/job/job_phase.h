// What a job is about: the present phase of its life, with what only that phase needs.
//
// The record's JobState is what users and a coordinator that restarts are told; the phase is what
// the controller waits for. They differ where a wait has the same form in several states.
//
//   Idle       QUEUED, PAUSED: no workers; QUEUED after a loss: a rest first
//   Starting   STARTING: the workers load and meet
//   Training   RUNNING: the workers report rounds
//   Regrouping RUNNING, SUSPENDING, STOPPING: the group fell apart, and those whom that left are to
//              say so, then to form the next one
//   Ending     SUSPENDING, STOPPING: last words are to come, then the files of the leader
//   Leaving    SUSPENDING with all that is kept durable, and final states: workers are to exit
//   Returning  RUNNING, SUSPENDING, STOPPING of a former coordinator: the workers report back
//
// While nobody can be heard whom a phase waits for, its deadline stands still.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>

#include "base/time.h"
#include "coordinator/job/group_formation.h"
#include "coordinator/job/stillness.h"
#include "protocol/worker_messages.h"

namespace tactus::job::phase {

struct Idle {
  std::optional<Instant> rests_until{};  // no devices are wanted before
};

struct Starting {
  GroupFormation formation;
  Instant deadline;  // to the first round's report
};

struct Returning {
  Instant deadline;  // to the last one's return; later with every sign that they live
};

struct Training {
  Instant since;                         // the group's first report, or all had come back
  Instant heard;                         // the last report came
  Instant deadline;                      // for a look, or sooner: it is looked at when it passes
  std::optional<Stillness> stillness{};  // since the first look after the last report
};

struct Ending {
  Duration limit;  // that the deadline stands for, for people
  Instant deadline;
};

// Of a member that says nothing, what its agent sees of it.
struct Sighting {
  protocol::StandingMessage standing{};
  Instant at;
  bool still = false;  // it does nothing
};

struct Regrouping {
  Instant since;
  Instant deadline;  // for what is awaited of those who are heard
  // Of the next group; nothing: who is in it is not decided.
  std::optional<GroupFormation> formation{};
  bool stale = false;              // a member has applied other rounds than the next group was told
  std::optional<Instant> asked{};  // since when who is silent is asked for; nothing: not yet
  std::map<std::uint32_t, Sighting> seen{};  // by rank: what their agents answered since
  std::optional<Ending> ending{};  // what the former group was about, which the next goes on with
};

struct Leaving {
  std::optional<Instant> deadline;  // to their exit by themselves; nothing: they were told
};

}  // namespace tactus::job::phase

namespace tactus::job {

using Phase = std::variant<phase::Idle, phase::Starting, phase::Returning, phase::Training,
                           phase::Ending, phase::Regrouping, phase::Leaving>;

// The deadline of a phase in which others are waited for stood still for so long.
inline void Prolong(Phase& phase, Duration by) {
  if (auto* const starting = std::get_if<phase::Starting>(&phase)) starting->deadline += by;
  if (auto* const ending = std::get_if<phase::Ending>(&phase)) ending->deadline += by;
  if (auto* const regrouping = std::get_if<phase::Regrouping>(&phase)) regrouping->deadline += by;
  if (auto* const training = std::get_if<phase::Training>(&phase)) {
    training->heard += by;
    training->deadline += by;
    training->stillness.reset();
  }
}

}  // namespace tactus::job
