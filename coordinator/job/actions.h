// What goes into the coordinator's core and what comes out of it.
//
// The core is handed an event and the time, and returns what to do. The order of the returned
// actions is a promise: a Persist stands before whatever must not be seen unless it is durable, and
// the shell carries the later ones out only when it is.
//
// Behind each stand its fields, by name, and at the end of the file what a tape calls it; see
// base/fields.h. Who writes or reads them includes record_fields.h, too.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/records.h"
#include "policies/decision.h"
#include "policies/plan.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

// ---- Messages between a job and one of its workers

using protocol::CheckpointedMessage;
using protocol::DifferedMessage;
using protocol::EndpointMessage;
using protocol::FailedMessage;
using protocol::FromWorker;
using protocol::GroupLostMessage;
using protocol::GroupMessage;
using protocol::PeersMessage;
using protocol::ProgramFacts;
using protocol::ReportMessage;
using protocol::SelectedMessage;
using protocol::StandingMessage;
using protocol::StopMessage;
using protocol::ToWorker;
using protocol::ValidatedMessage;

// ---- Events

// A user submits a job. The record comes with id, name, uid, spec, settings, create_time filled in.
struct JobSubmitted {
  JobRecord record{};
};
void Fields(auto& archive, Of<JobSubmitted> auto& event) { archive("record", event.record); }

// A user cancels. Ignored when the job is over.
struct JobCancelled {
  JobId job{};
  std::string reason{};
  bool discard = false;
  std::optional<Duration> grace{};  // for a result; unset: as JobDeadlines
};
void Fields(auto& archive, Of<JobCancelled> auto& event) {
  archive("job", event.job);
  archive("reason", event.reason);
  archive("discard", event.discard);
  archive("grace", event.grace);
}

// A user changes a job that is not over. All of spec, settings and labels as they are to be.
struct JobUpdated {
  JobId job{};
  std::string spec{};
  JobSettings settings{};
  std::map<std::string, std::string> labels{};
  // Workers read it only when they start: a group that trains is suspended for it and queued again.
  bool needs_restart = false;
};
void Fields(auto& archive, Of<JobUpdated> auto& event) {
  archive("job", event.job);
  archive("spec", event.spec);
  archive("settings", event.settings);
  archive("labels", event.labels);
  archive("needs_restart", event.needs_restart);
}

// A user takes a decision back: its axis goes back to Decision::from, and stays there. Ignored
// where the request was heard before, or JobController::WhyNotReverted says why not.
struct DecisionReverted {
  JobId job{};
  policies::Decision decision{};  // as on record
  std::string spec{};             // the job's, with the axis frozen
  std::string request_id{};       // empty: none
};
void Fields(auto& archive, Of<DecisionReverted> auto& event) {
  archive("job", event.job);
  archive("decision", event.decision);
  archive("spec", event.spec);
  archive("request_id", event.request_id);
}

// Ignored when the job is over or finishing, or is as asked for.
struct JobPaused {
  JobId job{};
};
void Fields(auto& archive, Of<JobPaused> auto& event) { archive("job", event.job); }

struct JobResumed {
  JobId job{};
};
void Fields(auto& archive, Of<JobResumed> auto& event) { archive("job", event.job); }

// A user cordons, drains or uncordons a node, known or not.
struct NodeMarked {
  NodeRecord node{};
};
void Fields(auto& archive, Of<NodeMarked> auto& event) { archive("node", event.node); }

// A user has a node forgotten, with what was said of it. Ignored while it is connected, or
// Cluster::JobOn names a job.
struct NodeDeleted {
  std::string node{};
};
void Fields(auto& archive, Of<NodeDeleted> auto& event) { archive("node", event.node); }

// An agent found devices at fault, or well again.
struct DeviceFaultsChanged {
  std::string node{};
  std::map<std::string, std::string> faults{};  // reasons by device; the others are well
};
void Fields(auto& archive, Of<DeviceFaultsChanged> auto& event) {
  archive("node", event.node);
  archive("faults", event.faults);
}

// An agent's word that it will end, and its workers with it.
struct Leave {
  std::string reason{};  // "SIGTERM"; not empty
  Duration within{};     // from now on; what is not through by then is not waited for
};
void Fields(auto& archive, Of<Leave> auto& leave) {
  archive("reason", leave.reason);
  archive("within", leave.within);
}

// An agent's stream is up. `same_incarnation`: the session of before goes on, and everything that
// was said in it arrives. Else the agent may be a new process, or missed some of it; the workers
// that it names run in any case, and of those that ended it has still to say so.
struct NodeJoined {
  std::string node{};
  std::vector<DeviceRecord> devices{};
  bool same_incarnation = false;
  std::uint64_t incarnation = 0;  // of the agent's process; 0: not said
  std::vector<WorkerId> running_workers{};
  std::vector<WorkerId> ended_workers{};  // their WorkerExited comes
  NodeTraits traits{};
  std::optional<Leave> leave{};  // it is about to end

  bool Runs(WorkerId worker) const {
    return std::ranges::find(running_workers, worker) != running_workers.end();
  }
  bool HasToTellOf(WorkerId worker) const {
    return std::ranges::find(ended_workers, worker) != ended_workers.end();
  }
};
void Fields(auto& archive, Of<NodeJoined> auto& event) {
  archive("node", event.node);
  archive("devices", event.devices);
  archive("same_incarnation", event.same_incarnation);
  archive("incarnation", event.incarnation);
  archive("running_workers", event.running_workers);
  archive("ended_workers", event.ended_workers);
  archive("traits", event.traits);
  archive("leave", event.leave);
}

// An agent was told to end. Its workers were told so, too, and end as suspended where they train.
struct NodeLeaving {
  std::string node{};
  Leave leave{};
};
void Fields(auto& archive, Of<NodeLeaving> auto& event) {
  archive("node", event.node);
  archive("leave", event.leave);
}

// An agent is not heard any more. Its workers may well train on.
struct NodeUnreachable {
  std::string node{};
  std::string reason{};
};
void Fields(auto& archive, Of<NodeUnreachable> auto& event) {
  archive("node", event.node);
  archive("reason", event.reason);
}

// An agent's process is known to have ended, and its workers with it.
struct NodeLost {
  std::string node{};
  std::string reason{};
  // Of these the next agent, which is there, says how they ended.
  std::vector<WorkerId> ended_workers{};

  bool HasToTellOf(WorkerId worker) const {
    return std::ranges::find(ended_workers, worker) != ended_workers.end();
  }
};
void Fields(auto& archive, Of<NodeLost> auto& event) {
  archive("node", event.node);
  archive("reason", event.reason);
  archive("ended_workers", event.ended_workers);
}

struct WorkerSaid {
  WorkerId worker{};
  FromWorker message{};
};
void Fields(auto& archive, Of<WorkerSaid> auto& event) {
  archive("worker", event.worker);
  archive("message", event.message);
}

struct WorkerExited {
  WorkerId worker{};
  int exit_code = 0;
  int signal = 0;
  std::string log_tail{};
};
void Fields(auto& archive, Of<WorkerExited> auto& event) {
  archive("worker", event.worker);
  archive("exit_code", event.exit_code);
  archive("signal", event.signal);
  archive("log_tail", event.log_tail);
}

// A file is on its way, maybe once more: while the coordinator's disk is full none arrives.
struct ArtifactComing {
  JobId job{};
  WorkerId worker{};  // whose it is; 0: its agent did not say
};
void Fields(auto& archive, Of<ArtifactComing> auto& event) {
  archive("job", event.job);
  archive("worker", event.worker);
}

// A file of the result, or a snapshot, has arrived whole at the coordinator.
struct ArtifactStored {
  JobId job{};
  ArtifactRecord artifact{};
  WorkerId worker{};  // whose it is; 0: its agent did not say
};
void Fields(auto& archive, Of<ArtifactStored> auto& event) {
  archive("job", event.job);
  archive("artifact", event.artifact);
  archive("worker", event.worker);
}

// What ProbeLink asked for was measured, or could not be.
struct LinkProbed {
  std::string from{};
  std::string to{};
  double bytes_per_second = 0;  // that arrived; 0: nothing is known
};
void Fields(auto& archive, Of<LinkProbed> auto& event) {
  archive("from", event.from);
  archive("to", event.to);
  archive("bytes_per_second", event.bytes_per_second);
}

// Time passed; sent at the time asked for by WakeAt, or later.
struct Ticked {};
void Fields(auto&, Of<Ticked> auto&) {}

using Event = std::variant<JobSubmitted, JobCancelled, NodeJoined, NodeLost, WorkerSaid,
                           WorkerExited, ArtifactStored, Ticked, JobUpdated, JobPaused, JobResumed,
                           NodeMarked, DeviceFaultsChanged, NodeUnreachable, NodeLeaving,
                           ArtifactComing, DecisionReverted, NodeDeleted, LinkProbed>;

// ---- Actions

// Write the job's record; later actions of the list wait until it is durable.
struct PersistJob {
  JobRecord record{};
};
void Fields(auto& archive, Of<PersistJob> auto& action) { archive("record", action.record); }

// Write what users said of a node; as PersistJob.
struct PersistNode {
  NodeRecord node{};
};
void Fields(auto& archive, Of<PersistNode> auto& action) { archive("node", action.node); }

// Write a round to the history; nothing waits for it.
struct PersistRound {
  RoundRecord round{};
};
void Fields(auto& archive, Of<PersistRound> auto& action) { archive("round", action.round); }

// Write a validation to the history, over one of the same round; nothing waits for it.
struct PersistValidation {
  ValidationRecord validation{};
};
void Fields(auto& archive, Of<PersistValidation> auto& action) {
  archive("validation", action.validation);
}

// Write a decision to the history, over its former form when it is there; nothing waits for it.
struct PersistDecision {
  JobId job{};
  policies::Decision decision{};
};
void Fields(auto& archive, Of<PersistDecision> auto& action) {
  archive("job", action.job);
  archive("decision", action.decision);
}

// Write what the job's planner has learned, over what was there, in one transaction with what else
// of its list is written; nothing waits for it.
struct PersistMemory {
  MemoryRecord memory{};
};
void Fields(auto& archive, Of<PersistMemory> auto& action) { archive("memory", action.memory); }

// Write what the next job of the kind begins with, over what was there; nothing waits for it.
struct PersistPrior {
  PriorRecord prior{};
};
void Fields(auto& archive, Of<PersistPrior> auto& action) { archive("prior", action.prior); }

// Forget the rounds of the history from this one on, and validations behind it, those of earlier
// Persists too: the state that they led to is lost. Nothing waits for it.
struct ForgetRounds {
  JobId job{};
  std::uint64_t from = 0;
};
void Fields(auto& archive, Of<ForgetRounds> auto& action) {
  archive("job", action.job);
  archive("from", action.from);
}

struct StartWorker {
  std::string node{};
  WorkerId worker{};
  JobId job{};
  std::string job_name{};
  std::string spec{};  // of the JobRecord
  std::string device{};
  std::string checkpoint{};  // SHA-256 of what it goes on from; empty: from the beginning
  // Samples after the checkpoint's that nobody trains on: with them the loss had risen.
  std::uint64_t skip_samples = 0;
  // Of more samples a pass ran out of memory on such a device; 0: that is not known.
  std::uint32_t pass_samples_max = 0;
  std::string array{};  // as ArrayOf; with others of it on the device it may share a process
};
void Fields(auto& archive, Of<StartWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("job", action.job);
  archive("job_name", action.job_name);
  archive("spec", action.spec);
  archive("device", action.device);
  archive("checkpoint", action.checkpoint);
  archive("skip_samples", action.skip_samples);
  archive("pass_samples_max", action.pass_samples_max);
  archive("array", action.array);
}

struct SendToWorker {
  std::string node{};
  WorkerId worker{};
  ToWorker message{};
};
void Fields(auto& archive, Of<SendToWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("message", action.message);
}

// End the process, kindly first.
struct StopWorker {
  std::string node{};
  WorkerId worker{};
  Duration grace{};
};
void Fields(auto& archive, Of<StopWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("grace", action.grace);
}

// Ask its agent where it stands, which a StandingMessage says.
struct LookAtWorker {
  std::string node{};
  WorkerId worker{};
};
void Fields(auto& archive, Of<LookAtWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
}

// Measure what one node can send to another, which LinkProbed says, in a moment or after a while.
struct ProbeLink {
  std::string from{};
  std::string to{};
};
void Fields(auto& archive, Of<ProbeLink> auto& action) {
  archive("from", action.from);
  archive("to", action.to);
}

// Tell those who watch.
struct PublishJob {
  JobRecord record{};
};
void Fields(auto& archive, Of<PublishJob> auto& action) { archive("record", action.record); }

struct PublishProgress {
  JobId job{};
  Progress progress{};
};
void Fields(auto& archive, Of<PublishProgress> auto& action) {
  archive("job", action.job);
  archive("progress", action.progress);
}

// A snapshot is durable and to be shown.
struct PublishSnapshot {
  JobId job{};
  ArtifactRecord snapshot{};
};
void Fields(auto& archive, Of<PublishSnapshot> auto& action) {
  archive("job", action.job);
  archive("snapshot", action.snapshot);
}

struct PublishDecision {
  JobId job{};
  policies::Plan plan{};
};
void Fields(auto& archive, Of<PublishDecision> auto& action) {
  archive("job", action.job);
  archive("plan", action.plan);
}

// Tell those who look after the coordinator that what the job's planner had learned could not be
// taken up, and that it learns anew.
struct PublishRelearning {
  JobId job{};
  std::string reason{};  // a clause
};
void Fields(auto& archive, Of<PublishRelearning> auto& action) {
  archive("job", action.job);
  archive("reason", action.reason);
}

// Send Ticked at this time, unless a later WakeAt says sooner.
struct WakeAt {
  Instant time{};
};
void Fields(auto& archive, Of<WakeAt> auto& action) { archive("time", action.time); }

using Action = std::variant<PersistJob, PersistRound, PersistDecision, StartWorker, SendToWorker,
                            StopWorker, PublishJob, PublishProgress, PublishDecision, WakeAt,
                            PersistNode, ForgetRounds, LookAtWorker, PublishSnapshot, PersistMemory,
                            PublishRelearning, PersistPrior, PersistValidation, ProbeLink>;
using Actions = std::vector<Action>;

// The node whose agent carries the action out; null: it is none of one agent's.
const std::string* NodeOf(const Action& action);

// The node whose agent starts anew with this event, as it is a new process or missed something;
// null: none does. Actions for it that were answered to earlier events and are not carried out yet,
// for instance because the disk was full, must never be: the core has counted their workers as
// gone.
const std::string* StartsAnew(const Event& event);

}  // namespace tactus::job

namespace tactus {

template <>
inline constexpr const char* kKind<job::JobSubmitted> = "job_submitted";
template <>
inline constexpr const char* kKind<job::JobCancelled> = "job_cancelled";
template <>
inline constexpr const char* kKind<job::NodeJoined> = "node_joined";
template <>
inline constexpr const char* kKind<job::NodeLost> = "node_lost";
template <>
inline constexpr const char* kKind<job::WorkerSaid> = "worker_said";
template <>
inline constexpr const char* kKind<job::WorkerExited> = "worker_exited";
template <>
inline constexpr const char* kKind<job::ArtifactStored> = "artifact_stored";
template <>
inline constexpr const char* kKind<job::ArtifactComing> = "artifact_coming";
template <>
inline constexpr const char* kKind<job::Ticked> = "ticked";
template <>
inline constexpr const char* kKind<job::JobUpdated> = "job_updated";
template <>
inline constexpr const char* kKind<job::DecisionReverted> = "decision_reverted";
template <>
inline constexpr const char* kKind<job::JobPaused> = "job_paused";
template <>
inline constexpr const char* kKind<job::JobResumed> = "job_resumed";
template <>
inline constexpr const char* kKind<job::NodeMarked> = "node_marked";
template <>
inline constexpr const char* kKind<job::NodeDeleted> = "node_deleted";
template <>
inline constexpr const char* kKind<job::DeviceFaultsChanged> = "device_faults_changed";
template <>
inline constexpr const char* kKind<job::NodeUnreachable> = "node_unreachable";
template <>
inline constexpr const char* kKind<job::NodeLeaving> = "node_leaving";
template <>
inline constexpr const char* kKind<job::LinkProbed> = "link_probed";

template <>
inline constexpr const char* kKind<job::PersistJob> = "persist_job";
template <>
inline constexpr const char* kKind<job::PersistNode> = "persist_node";
template <>
inline constexpr const char* kKind<job::PersistRound> = "persist_round";
template <>
inline constexpr const char* kKind<job::PersistValidation> = "persist_validation";
template <>
inline constexpr const char* kKind<job::PersistDecision> = "persist_decision";
template <>
inline constexpr const char* kKind<job::PersistMemory> = "persist_memory";
template <>
inline constexpr const char* kKind<job::PersistPrior> = "persist_prior";
template <>
inline constexpr const char* kKind<job::ForgetRounds> = "forget_rounds";
template <>
inline constexpr const char* kKind<job::StartWorker> = "start_worker";
template <>
inline constexpr const char* kKind<job::SendToWorker> = "send_to_worker";
template <>
inline constexpr const char* kKind<job::StopWorker> = "stop_worker";
template <>
inline constexpr const char* kKind<job::LookAtWorker> = "look_at_worker";
template <>
inline constexpr const char* kKind<job::ProbeLink> = "probe_link";
template <>
inline constexpr const char* kKind<job::PublishJob> = "publish_job";
template <>
inline constexpr const char* kKind<job::PublishProgress> = "publish_progress";
template <>
inline constexpr const char* kKind<job::PublishSnapshot> = "publish_snapshot";
template <>
inline constexpr const char* kKind<job::PublishDecision> = "publish_decision";
template <>
inline constexpr const char* kKind<job::PublishRelearning> = "publish_relearning";
template <>
inline constexpr const char* kKind<job::WakeAt> = "wake_at";

}  // namespace tactus
