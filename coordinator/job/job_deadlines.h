// How long a job waits for what, and why so long.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// So many of the job's rounds: of the length that 99 in 100 of the last 256 did not exceed; but
// `least` and `most` bound it. Rounded up to a second, for people.
struct RoundMultiple {
  double rounds = 0;
  Duration least{};
  Duration most = std::chrono::hours(30 * 24);

  // round_seconds: that length; 0: not known.
  Duration Of(double round_seconds) const;
};

// Kept in order, by what they are at least: inquiry <= look = regroup; grace <= second_look <=
// discard <= silence < still < cancel < start < stall. What a job waits for whom it cannot hear is
// the job's own: JobSettings::hold.
struct JobDeadlines {
  // From StartWorker to the first round: reading a model and a data set of many gigabytes over a
  // slow network takes minutes; who needs longer is taken to hang.
  Duration start = std::chrono::minutes(10);
  // While training, from a report to the question who waits for whom, and from one such look to the
  // next. It ends nothing, so it may come early: where a plan's rounds are longer than any before,
  // it finds members that compute.
  RoundMultiple look = {
      .rounds = 4, .least = std::chrono::seconds(2), .most = std::chrono::seconds(60)};
  // From the loss of a group, or from its members' words on it, to the next step of each of them
  // who is heard: its word that it lost its group, which it notices within a round, then its
  // address. Who says nothing is asked for; where its agent answers twice, an `inquiry` apart, and
  // it has done nothing meanwhile, it is ended, and the others go on without it. Who does something
  // has as long as `silence`.
  RoundMultiple regroup = {
      .rounds = 4, .least = std::chrono::seconds(2), .most = std::chrono::seconds(60)};
  // From the first look at which two witnesses say that a member stands still, and at all looks
  // since: as long as a person, or a batch system, may stop a process on purpose.
  RoundMultiple still = {.rounds = 20, .least = std::chrono::minutes(2)};
  // From the last look at which anything moved, where there is doubt: it takes processor time, or
  // waits for a disk, or two members wait for one another over a link that may heal, or nobody
  // answered. A batch may be long, and TCP waits as long.
  RoundMultiple stall = {.rounds = 20, .least = std::chrono::minutes(15)};
  // From the first last word, or the return of all after a restart, to the last: evaluation.
  Duration finish = std::chrono::minutes(15);
  // From a cancel to the last Finished: the running round, the evaluation and the result's files;
  // and EdgeTime, as that may have just begun, and ValidationTime, as another one is the end's.
  Duration cancel = std::chrono::minutes(5);
  // The same without a result: the running round, and EdgeTime, which may have just begun.
  Duration discard = std::chrono::seconds(30);
  // From the last Finished, a file of the result, or an attempt of its node to bring any file, to
  // the next of these: some gigabytes over a slow network.
  Duration artifacts = std::chrono::minutes(10);
  // While training, when a node is not heard and others are: from the last sign that its workers
  // live to the next, which is a report of a newer round, or a validation, by anybody. So long, or
  // so many of the job's rounds if that is longer: the length of rounds varies, and reports take
  // their way; and EdgeTime, in which no round ends. Then a `second_look`. With the 10 s
  // until a node counts as unheard, a worker that is dead and whose peers do not notice is known
  // after 50 s, or 20 rounds and 20 s. While starting, from the time that a node counts as unheard
  // to a start on others.
  RoundMultiple silence = {.rounds = 20, .least = std::chrono::seconds(30)};
  // Before silence counts: maybe the coordinator itself stood still, and what was said meanwhile
  // comes within moments; an agent retries within seconds.
  Duration second_look = std::chrono::seconds(10);
  // From the time that a job became the first that cannot start to lending what it cannot use yet.
  Duration lend = std::chrono::seconds(5);
  // From a group's first round until others may have devices of it, and to another size for it
  // where that costs a checkpoint and a start; twice as long with each regroup of the job, up to 16
  // minutes.
  Duration resize = std::chrono::seconds(30);
  // From a group's first round to workers that load beside it, which costs the group no more than a
  // regroup when they are ready: so long that nodes which come one by one are taken in together.
  // Twice as long with each regroup of the job and each joiner that came to nothing, up to 11
  // minutes: a device that ends what runs on it would cost its group a regroup each time.
  Duration join = std::chrono::seconds(5);
  // From the end of a job or its suspension to the exit of its workers, which leave by themselves.
  Duration exit = std::chrono::seconds(30);
  // From the end of programs' training to their exit: they may evaluate and save what they trained.
  Duration program_exit = std::chrono::minutes(10);
  // From SIGTERM to SIGKILL.
  Duration grace = std::chrono::seconds(10);
  // From the first sign of a failure to the verdict: a dead worker's peers notice within a round,
  // and its own agent says so within moments, in either order.
  Duration inquiry = std::chrono::seconds(2);
  // Between two PublishProgress: as often as a person can read.
  Duration progress_publish = std::chrono::seconds(1);
  // Between two PersistJob of a running job: what a restart may forget of the progress shown.
  Duration progress_persist = std::chrono::seconds(5);
  // Between two PersistMemory of a running job that decides nothing: what a restart may forget of
  // the rounds that the planner saw. A trial or a canary begins with a decision, so that no more of
  // it is lost than ran of it; a memory has tens of kilobytes.
  Duration memory_persist = std::chrono::seconds(10);
  // Between two PersistPrior of a running job, of which the one at its end is the last.
  Duration prior_persist = std::chrono::minutes(1);
};

// How long the job's validations take, in which no round ends: the newest, or all in the mean where
// that is longer, rounded up to a second. Of the first one nobody knows it: 0.
Duration ValidationTime(const ValidationProgress& made);

// How long the group may stand between two rounds: for a validation and, where epochs are of a part
// of the samples, for the choice of another one, which takes as long as the longest of the job, to
// a day, rounded up to a second. Of the first one nobody knows it.
Duration EdgeTime(const JobRecord& record);

// One step of the ladder of those that a training job's group is watched by, for people.
struct Rung {
  std::string name{};
  Duration value{};
  // Of what was observed: the length of a round that 99 in 100 did not exceed; 0: none was yet, or
  // it does not matter.
  double round_seconds = 0;
  RoundMultiple of{};  // rounds = 0: as `value`, whatever was observed
  std::string guards{};
};

// Shortest first, as far as their bounds go. round_seconds: as RoundMultiple::Of has it.
// edge: EdgeTime. unheard: after which an agent counts as not heard. hold: the job's
// own.
struct LadderFacts {
  double round_seconds = 0;
  Duration edge{};
  Duration unheard{};
  Duration hold{};
};
std::vector<Rung> LadderOf(const JobDeadlines& deadlines, const LadderFacts& facts);

}  // namespace tactus::job
