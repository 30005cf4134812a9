// How long a job waits for what, and why so long.

#pragma once

#include <chrono>

#include "base/time.h"

namespace tactus::job {

// Kept in order: inquiry < grace < rejoin <= discard < cancel < start < stall.
struct JobDeadlines {
  // From StartWorker to the first round: reading a model and a data set of many gigabytes over a
  // slow network takes minutes; who needs longer is taken to hang.
  Duration start = std::chrono::minutes(10);
  // While training, from a report to the next one of any member, or so many of the job's rounds if
  // that is longer: more than the members wait for one another in a collective, so that they have
  // their say first. Then another `rejoin`, in case it was the coordinator that stood still.
  Duration stall = std::chrono::minutes(15);
  double stall_rounds = 20;
  // From a cancel to the last Finished: the running round, the evaluation and the result's files.
  Duration cancel = std::chrono::minutes(5);
  // The same without a result: the running round alone.
  Duration discard = std::chrono::seconds(30);
  // From the last Finished, or a file of the result, to the next file: some gigabytes over a slow
  // network.
  Duration artifacts = std::chrono::minutes(10);
  // From a restart of the coordinator to the last member's return: an agent retries within seconds.
  Duration rejoin = std::chrono::seconds(30);
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
