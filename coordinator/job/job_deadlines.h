// How long a job waits for what, and why so long.

#pragma once

#include <chrono>

#include "base/time.h"

namespace tactus::job {

// Kept in order: inquiry < grace <= second_look <= discard <= silence < cancel < start < stall.
// What a job waits for whom it cannot hear is the job's own: JobSettings::hold.
struct JobDeadlines {
  // From StartWorker to the first round: reading a model and a data set of many gigabytes over a
  // slow network takes minutes; who needs longer is taken to hang.
  Duration start = std::chrono::minutes(10);
  // While training, from a report to the next one of any member, or so many of the job's rounds if
  // that is longer: more than the members wait for one another in a collective, so that they have
  // their say first. Then a `second_look`.
  Duration stall = std::chrono::minutes(15);
  double stall_rounds = 20;
  // From a cancel to the last Finished: the running round, the evaluation and the result's files.
  Duration cancel = std::chrono::minutes(5);
  // The same without a result: the running round alone.
  Duration discard = std::chrono::seconds(30);
  // From the last Finished, or a file of the result, to the next file: some gigabytes over a slow
  // network.
  Duration artifacts = std::chrono::minutes(10);
  // While training, when a node is not heard and others are: from the last sign that its workers
  // live to the next, which is a report of a newer round by anybody. So long, or so many of the
  // job's rounds if that is longer: the length of rounds varies, and reports take their way. Then a
  // `second_look`. With the 10 s until a node counts as unheard, a worker that is dead and whose
  // peers do not notice is known after 50 s, or 20 rounds and 20 s. While starting, from the time
  // that a node counts as unheard to a start on others.
  Duration silence = std::chrono::seconds(30);
  double silence_rounds = 20;
  // Before silence or standing still counts: maybe the coordinator itself stood still, and what was
  // said meanwhile comes within moments; an agent retries within seconds.
  Duration second_look = std::chrono::seconds(10);
  // From the time that a job became the first that cannot start to lending what it cannot use yet.
  Duration lend = std::chrono::seconds(5);
  // From a group's first round to another size for it, which costs a checkpoint and a start.
  Duration resize = std::chrono::seconds(30);
  // From the end of a job or its suspension to the exit of its workers, which leave by themselves.
  Duration exit = std::chrono::seconds(30);
  // From SIGTERM to SIGKILL.
  Duration grace = std::chrono::seconds(10);
  // From the first sign of a failure to the verdict: a dead worker's peers notice within a round,
  // and its own agent says so within moments, in either order.
  Duration inquiry = std::chrono::seconds(2);
  // Between two PublishProgress: as often as a person can read.
  Duration progress_publish = std::chrono::seconds(1);
  // Between two PersistJob of a running job: what a restart may forget of the progress shown.
  Duration progress_persist = std::chrono::seconds(5);
};

}  // namespace tactus::job
