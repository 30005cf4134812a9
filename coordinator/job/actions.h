// What goes into the coordinator's core and what comes out of it.
//
// The core is handed an event and the time, and returns what to do. The order of the returned
// actions is a promise: a Persist stands before whatever must not be seen unless it is durable, and
// the shell carries the later ones out only when it is.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/records.h"
#include "policies/decision.h"
#include "policies/plan.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

// ---- Messages between a job and one of its workers

using protocol::EndpointMessage;
using protocol::FailedMessage;
using protocol::FromWorker;
using protocol::GroupMessage;
using protocol::PeersMessage;
using protocol::ReadyMessage;
using protocol::ReportMessage;
using protocol::StopMessage;
using protocol::ToWorker;

// ---- Events

// A user submits a job. The record comes with id, name, uid, spec, settings, create_time filled in.
struct JobSubmitted {
  JobRecord record{};
};
// A user cancels. Ignored when the job is over.
struct JobCancelled {
  JobId job{};
  std::string reason{};
  bool discard = false;
  std::optional<Duration> grace{};  // for a result; unset: as JobDeadlines
};
// A user changes a job that is not over. All of spec, settings and labels as they are to be.
struct JobUpdated {
  JobId job{};
  std::string spec{};
  JobSettings settings{};
  std::map<std::string, std::string> labels{};
  // Workers read it only when they start: a group that trains is suspended for it and queued again.
  bool needs_restart = false;
};
// Ignored when the job is over or finishing, or is as asked for.
struct JobPaused {
  JobId job{};
};
struct JobResumed {
  JobId job{};
};
// A user cordons, drains or uncordons a node, known or not.
struct NodeMarked {
  NodeRecord node{};
};
// An agent found devices at fault, or well again.
struct DeviceFaultsChanged {
  std::string node{};
  std::map<std::string, std::string> faults{};  // reasons by device; the others are well
};
// An agent's stream is up. `same_incarnation`: it was connected before and kept its workers.
struct NodeJoined {
  std::string node{};
  std::vector<DeviceRecord> devices{};
  bool same_incarnation = false;
  std::vector<WorkerId> running_workers{};
  NodeTraits traits{};
};
// An agent is given up: its workers are gone.
struct NodeLost {
  std::string node{};
  std::string reason{};
};
struct WorkerSaid {
  WorkerId worker{};
  FromWorker message{};
};
struct WorkerExited {
  WorkerId worker{};
  int exit_code = 0;
  int signal = 0;
  std::string log_tail{};
};
// A file of the result has arrived whole at the coordinator.
struct ArtifactStored {
  JobId job{};
  ArtifactRecord artifact{};
};
// Time passed; sent at the time asked for by WakeAt, or later.
struct Ticked {};
using Event = std::variant<JobSubmitted, JobCancelled, NodeJoined, NodeLost, WorkerSaid,
                           WorkerExited, ArtifactStored, Ticked, JobUpdated, JobPaused, JobResumed,
                           NodeMarked, DeviceFaultsChanged>;

// ---- Actions

// Write the job's record; later actions of the list wait until it is durable.
struct PersistJob {
  JobRecord record{};
};
// Write what users said of a node; as PersistJob.
struct PersistNode {
  NodeRecord node{};
};
// Write a round to the history; nothing waits for it.
struct PersistRound {
  RoundRecord round{};
};
// Write a decision to the history, over its former form when it is there; nothing waits for it.
struct PersistDecision {
  JobId job{};
  policies::Decision decision{};
};
struct StartWorker {
  std::string node{};
  WorkerId worker{};
  JobId job{};
  std::string job_name{};
  std::string spec{};  // of the JobRecord
  std::string device{};
  std::string checkpoint{};  // SHA-256 of what it goes on from; empty: from the beginning
};
struct SendToWorker {
  std::string node{};
  WorkerId worker{};
  ToWorker message{};
};
// End the process, kindly first.
struct StopWorker {
  std::string node{};
  WorkerId worker{};
  Duration grace{};
};
// Tell those who watch.
struct PublishJob {
  JobRecord record{};
};
struct PublishProgress {
  JobId job{};
  Progress progress{};
};
struct PublishDecision {
  JobId job{};
  policies::Plan plan{};
};
// Send Ticked at this time, unless a later WakeAt says sooner.
struct WakeAt {
  Instant time{};
};
using Action =
    std::variant<PersistJob, PersistRound, PersistDecision, StartWorker, SendToWorker, StopWorker,
                 PublishJob, PublishProgress, PublishDecision, WakeAt, PersistNode>;
using Actions = std::vector<Action>;

// The node whose agent carries the action out; null: it is none of an agent's.
const std::string* NodeOf(const Action& action);

// The node whose agent starts anew with this event, as it was given up or is a new process; null:
// none does. Actions for it that were answered to earlier events and are not carried out yet, for
// instance because the disk was full, must never be: the core has counted their workers as gone.
const std::string* StartsAnew(const Event& event);

}  // namespace tactus::job
