// A job as the coordinator keeps it: plain data, in memory and in the store.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "policies/decision.h"
#include "policies/plan.h"
#include "policies/planner_options.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

enum class JobState {
  kQueued,
  kStarting,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
  kCancelled,
  kSuspending,  // its workers are being ended, with a checkpoint where they trained
  kPaused
};

// True for the three states that a job never leaves.
bool IsFinal(JobState state);

// True where one state may follow another; the diagram is job_controller.h's.
bool MayFollow(JobState from, JobState to);

// "queued", as logs, metrics and reports say it.
const char* NameOf(JobState state);

// kStandard: cuda where any node has such a device, else cpu; kAny: whatever there is, together.
enum class DeviceKind { kStandard, kCpu, kCuda, kAny };

// What the controller needs of a job's specification. The rest travels to the workers unread.
struct JobSettings {
  std::string name{};                    // as in the job file
  std::uint32_t workers_min = 1;         // >= 1
  std::uint32_t workers_max = 1u << 16;  // >= workers_min
  std::uint32_t spares = 0;              // beside workers_max, ready to take a lost one's place
  bool encrypted = false;                // what its workers send each other
  std::uint32_t mesh_devices = 1;        // that hold one model together; 1: each has all of it
  std::string mesh{};                    // how they do, for people; empty: they do not
  bool program = false;                  // its workers are programs, which go on when it is over
  DeviceKind device = DeviceKind::kStandard;
  std::map<std::string, std::string> selector{};  // labels that a node must have
  std::vector<std::string> tolerations{};         // taints that a node may have
  std::int32_t priority = 0;                      // [-1000, 1000], the highest first
  std::uint32_t retries = 3;                      // [0, 100], from one checkpoint
  std::uint32_t checkpoints_kept = 2;             // [1, 16], the newest included
  // How long it waits, with its devices, for workers of which nobody can tell whether they live.
  Duration hold = std::chrono::hours(1);
  policies::PlannerOptions adapt{};
  // Equal for jobs of one model, data, optimizer and way to adapt, so that what the planner of one
  // found is of use to the next; empty: nothing is handed on to this job, nor from it.
  std::string kind{};
  // Equal for jobs of one worker each whose passes can be computed together, as they differ in
  // numbers alone; empty: this one's cannot.
  std::string shape{};
  std::optional<double> stop_train_loss{};
  std::optional<std::uint32_t> stop_epochs{};
  std::optional<Duration> stop_time{};
  std::optional<std::uint64_t> stop_rounds{};
};

// Wall-clock time in nanoseconds since 1970, for people and records; it decides nothing.
using WallTime = std::int64_t;

// One device of a node.
struct DeviceRecord {
  std::string name{};  // "cpu:0"
  DeviceKind kind = DeviceKind::kCpu;
  std::string model{};
  double emulated_speed = 0;       // 0: real
  std::string uuid{};              // empty: none
  std::uint64_t memory_bytes = 0;  // 0: not known
  std::string fault{};             // why it gets no work; empty: it is well
};

// What a node's agent says of it besides its devices.
struct NodeTraits {
  std::map<std::string, std::string> labels{};
  std::vector<std::string> taints{};  // "key" or "key=value"
  bool arrays = false;                // workers of one array on one device share a process there
  std::uint64_t worker_memory_bytes = 0;  // of the host's, for one process; 0: no limit
};

// What users said of a node; survives restarts.
struct NodeRecord {
  std::string name{};
  bool cordoned = false;  // no new workers
  bool draining = false;  // and those that run are moved; only with cordoned
};

// A member of a job's group.
struct MemberRecord {
  WorkerId worker{};
  std::string node{};
  std::string device{};
  double emulated_speed = 0;
  DeviceKind kind = DeviceKind::kCpu;
  std::string uuid{};             // of its GPU; empty: it has none
  std::uint64_t incarnation = 0;  // of the agent's process that it was given to; 0: not known
  std::string model{};            // of the device
  std::string nccl_version{};     // as it said when it was ready
  std::string array{};            // in which it was given its device, as ArrayOf; empty: in none
};

using protocol::TransportKind;

// How a group's buffers travel, and why so.
struct TransportRecord {
  TransportKind kind = TransportKind::kByDevice;  // of groups of before it was on record
  std::string reason{};
};

// Who trained from a round on.
struct GroupRecord {
  std::uint64_t generation = 0;
  std::uint64_t first_round = 0;  // the first that it may have applied
  std::vector<MemberRecord> members{};
  TransportRecord transport{};
  std::string mesh{};  // how replicas are laid out over members, for people; empty: one each
  std::vector<policies::Encoding> encodings{};  // beside dense, that all of them know
  std::uint64_t first_plan = 0;  // the version of its first; 0: of versions that did not say
  std::uint64_t last_plan = 0;   // of the newest that came into force
};

// Members of former groups that a job's record keeps, of all of them together: so that a record
// that is written every few seconds stays small however often the job's group changes.
inline constexpr std::size_t kFormerMembersMax = 256;

struct ArtifactRecord {
  std::string path{};
  std::uint64_t size_bytes = 0;
  std::string sha256{};  // 64 hexadecimal digits; empty: of a version that did not say
};

// What a job goes on from after its workers were ended, and where it stood then, as Progress says.
struct CheckpointRecord {
  std::string sha256{};
  std::uint64_t size_bytes = 0;
  std::uint64_t rounds = 0;  // applied before it
  std::uint64_t epoch = 0;
  std::uint64_t epoch_consumed = 0;
  std::uint64_t samples = 0;
  double loss = 0;
  double elapsed_seconds = 0;
  WallTime time = 0;  // it became known; 0: of versions that did not say
};

// A loss had risen as nothing explained, and the job goes on from before that.
struct Rollback {
  std::string checkpoint{};        // SHA-256, of what it went back to
  std::uint64_t skip_samples = 0;  // after its own: those up to the round that went back
  std::string reason{};            // for people
};

// Why a job's workers are being ended, and what comes then.
struct Suspension {
  bool pause = false;    // PAUSED afterwards; else QUEUED
  std::string reason{};  // for people
  bool secured = false;  // all that is kept of the group is durable: its workers may go
  bool lost = false;     // the group fell apart: nothing of it is kept, and the job is tried again
};

// One try at a job; attempts.h says what begins and ends it. Rounds, samples and the time that was
// trained are the job's, so that what was done in it is the difference, and what of that was lost
// the difference to the next attempt's first.
struct AttemptRecord {
  std::uint32_t number = 0;                          // from 1 on
  WallTime start_time = 0;                           // its first workers were started
  WallTime end_time = 0;                             // 0: it goes on
  std::uint64_t first_round = 0, first_samples = 0;  // of what it went on from
  double first_trained = 0;                          // likewise [s]
  std::uint64_t rounds = 0, samples = 0;             // when it ended
  double trained = 0;                                // likewise [s]
  std::vector<std::string> nodes{};                  // of its newest group
  std::uint32_t workers = 0;                         // likewise
  std::string reason{};                              // why it ended, for people
};

// Of a job's attempts, the newest so many are kept, with so many of their nodes.
inline constexpr std::size_t kAttemptsMax = 16;
inline constexpr std::size_t kAttemptNodesMax = 8;

using protocol::EvaluatedMessage;
using protocol::FinishedMessage;
using protocol::GroupLostMessage;
using protocol::kCheckpointFile;
using protocol::ReadyMessage;

struct FinishedMember {
  std::uint32_t rank = 0;
  FinishedMessage message{};
};

// A member under whom the group fell apart, and who awaits the next one.
struct LostMember {
  std::uint32_t rank = 0;
  GroupLostMessage message{};
};

// How far the present group has come in ending: what a restart must not ask for again.
struct EndingRecord {
  std::vector<FinishedMember> finished{};   // by rank, a rank once
  std::vector<ArtifactRecord> artifacts{};  // whole at the coordinator
  std::optional<EvaluatedMessage> evaluated{};
  std::vector<std::uint32_t> excused{};  // ranks that owe no last word: they left when all was done
};

struct ResultRecord {
  std::vector<ArtifactRecord> artifacts{};
  double validation_loss = 0;
  double validation_accuracy = -1;
  std::uint64_t validation_samples = 0;  // 0: no validation
  std::uint64_t validation_rounds = 0;   // applied before the parameters that the result has
  double train_loss = 0;
  std::uint64_t rounds = 0;
  std::uint64_t samples = 0;
  std::uint64_t epochs = 0;
  double train_seconds = 0;
  std::string stop_reason{};
  double utilisation = 0;  // samples/s over the sum of the workers' own speeds
};

// A validation, as kept in the history: of the parameters after `rounds` rounds.
struct ValidationRecord {
  JobId job{};
  std::uint64_t rounds = 0;
  std::uint64_t epoch = 0;            // completed
  std::uint64_t trained_samples = 0;  // by all workers
  double train_seconds = 0;           // when it ended
  double loss = 0;
  double accuracy = -1;  // -1: the loss has no notion of it
  std::uint64_t samples = 0;
  double seconds = 0;  // that training stood still for it
};

// What the validations have come to.
struct ValidationProgress {
  std::optional<ValidationRecord> newest{};
  std::optional<ValidationRecord> best{};  // of the least loss
  std::uint64_t count = 0;                 // made; those of attempts that were lost, too
  double seconds = 0;                      // that they took
  std::uint32_t since_best = 0;            // made in a row since the best one
};

// One member's part of the progress.
struct WorkerProgress {
  std::uint32_t batch_size = 0;
  std::uint64_t samples = 0;
  double samples_per_second = 0;     // while computing
  double idle_ratio = 0;             // of the last rounds
  double data_ratio = 0;             // of the last rounds, until its samples were in memory
  double link_bytes_per_second = 0;  // of the last rounds that told it; 0: none did
};

// Where a job is; the record of its ledger.
struct Progress {
  std::uint64_t rounds = 0;
  std::uint64_t epoch = 0;
  std::uint64_t epoch_consumed = 0;  // samples of the running epoch
  std::uint64_t epoch_samples = 0;   // training samples in an epoch; 0: not known yet
  std::uint64_t samples = 0;
  // Without an update, as numbers were not finite: since the start, those of attempts that were
  // lost, too.
  std::uint64_t skipped_rounds = 0;
  std::uint64_t repeated_passes = 0;    // in pieces, as memory was short: likewise
  std::uint64_t unrecorded_rounds = 0;  // of which reports were lost: likewise
  double loss = 0;                      // of a policies::LossWindow
  double samples_per_second = 0;
  double elapsed_seconds = 0;
  std::optional<double> eta_seconds{};
  double long_round_seconds = 0;  // 99 in 100 of the last 256 were no longer; 0: none yet
  ValidationProgress validation{};
  policies::Plan plan{};                  // the newest adopted
  std::vector<WorkerProgress> workers{};  // by rank
};

// So that a call which is made again does nothing again.
inline constexpr std::size_t kRevertRequestsMax = 64;

// A job, whole. What survives a restart is exactly this.
struct JobRecord {
  JobId id{};
  std::string name{};  // resource id: "shakespeare-3"
  std::string uid{};
  std::string request_id{};  // empty: none
  std::string from{};        // name of the job that it began from; empty: none
  std::string owner{};       // who may change it beside admins, "user/alice"; empty: nobody
  std::string spec{};        // the serialized specification, unread by the controller
  JobSettings settings{};    // derived from spec
  std::map<std::string, std::string> labels{};
  JobState state = JobState::kQueued;
  std::string state_reason{};
  std::string error_field{};
  std::uint64_t revision = 0;   // grows with every change that is persisted
  std::uint64_t announced = 0;  // the revision that users were told of last
  WallTime create_time = 0, start_time = 0, end_time = 0, update_time = 0;  // 0: not yet
  std::uint64_t generation = 0;         // of its group; 0: none yet
  std::vector<MemberRecord> members{};  // by rank
  std::vector<GroupRecord> groups{};    // oldest first, the present or last one included
  Progress progress{};
  std::optional<ResultRecord> result{};
  // What only a coordinator that restarts asks for:
  policies::Plan newest_plan{};  // the newest decided; on its way while progress.plan is older
  std::string cancel_reason{};   // empty: nobody cancelled it
  bool discard = false;          // cancelled without a result
  std::optional<Duration> cancel_grace{};  // for a result; unset: as JobDeadlines
  EndingRecord ending{};
  // Of groups that are gone, and what came late of the newest one's, whose others are in `ending`.
  std::vector<ArtifactRecord> snapshots{};
  std::optional<Suspension> suspension{};        // while SUSPENDING
  std::optional<CheckpointRecord> checkpoint{};  // the newest
  // Those before it that are kept as well, newest first.
  std::vector<CheckpointRecord> former_checkpoints{};
  // Of the progress's elapsed_seconds, those before the present group's first round.
  double elapsed_before_seconds = 0;
  WallTime group_start_time = 0;          // the present group's first round; 0: not yet
  std::uint32_t suspensions = 0;          // so far
  std::vector<AttemptRecord> attempts{};  // oldest first, the present or last one included
  std::uint32_t fruitless = 0;            // attempts lost in a row that began at one checkpoint
  std::uint64_t fruitless_rounds = 0;     // applied before that checkpoint
  WallTime retry_time = 0;  // while it rests before a retry: until then; decides nothing
  // Groups that were formed of those whom a loss had left: no attempt ended with them.
  std::uint32_t regroups = 0;
  std::string regroup_reason{};  // of the last one, for people; empty: there was none
  // Comparisons of parameters that found some that were wrong.
  std::uint32_t differences = 0;
  std::string difference_reason{};  // of the last one, for people; empty: there was none
  // Choices of the samples that epochs are made of.
  std::uint64_t selections = 0;
  std::string selection{};       // the last one, for people; empty: there was none
  double selection_seconds = 0;  // that the group stood still for the longest one
  // Once in a job's life at most. Where there was nothing to go back to the reason alone is set.
  std::optional<Rollback> rollback{};
  // Groups that were formed of others on purpose, as some joined or left while the rest trained.
  std::uint32_t resizes = 0;
  std::string resize_reason{};  // of the last one, likewise
  // What its workers have loaded, which who joins has to have, too; no parameters: not known.
  ReadyMessage loaded{};
  // Who loads beside the group, or is spare. For people and for worker_ordinals: a coordinator that
  // restarts ends them, as it ends whoever runs and is in no group.
  std::vector<MemberRecord> joiners{};
  // Who said that the group fell apart, by rank of the present one: until its first round, which
  // proves that all of them are in it.
  std::vector<LostMember> lost{};
  // Of its workers, those of former groups too: each that it ever had is below.
  std::uint64_t worker_ordinals = 0;
  // A user took it back, and the plan for that is still to be made.
  std::optional<policies::Decision> reversal{};
  // By which users took decisions back, the newest kRevertRequestsMax, oldest first.
  std::vector<std::string> revert_requests{};
};

// One applied round over all members, as kept in the history.
struct RoundRecord {
  JobId job{};
  std::uint64_t round = 0;
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;
  // As policies::Report has them.
  double loss = 0;
  std::uint64_t local_samples = 0;
  double local_loss = 0;
  // Mean of the members' times from their last round's end to this one's: those ends differ, and
  // only the mean adds up to the time that passed.
  double seconds = 0;
  std::uint64_t plan_version = 0;
  std::vector<std::uint64_t> worker_samples{};   // by rank
  std::vector<double> worker_compute_seconds{};  // by rank: forward, backward and optimizer
  std::vector<double> worker_blocked_seconds{};  // by rank: wait for the others and transfer
  std::uint64_t bytes = 0;                       // payload of the round's collectives, of a member
  // As policies::Report has them; of rank 0, equal on all but the steps of a delayed round.
  std::uint32_t steps = 0;
  double learning_rate = 0;
  double gain = 1;
  double progress = 0;
  double orthogonality = 0;
  double transfer_seconds = 0;                  // the least of the members'
  std::vector<double> worker_update_seconds{};  // by rank: after the round's end
};

// A decision, as kept in the history: one a job, plan version and axis, the newest form of it.
struct DecisionRecord {
  JobId job{};
  policies::Decision decision{};
};

// What the planner of a job that is not over has learned: policies::PlanPolicy::Memory().
struct MemoryRecord {
  JobId job{};
  std::string memory{};  // empty: none is kept
};

// What a job's planner found, for the next of its kind.
struct PriorRecord {
  std::string key{};         // PriorKey() or PassBoundKey() of priors.h
  std::uint64_t number = 0;  // grows from one that is put to the next
  std::string prior{};       // policies::BytesOf(Prior) or BytesOfPassBound(); empty: none is kept
};

// Rounds of a job from this one on, and the validations behind it.
struct RoundsFrom {
  JobId job{};
  std::uint64_t from = 0;
};

// What a store writes in one transaction: all of it or nothing.
struct WriteBatch {
  std::vector<job::JobRecord> jobs{};                // inserted, or replaced when the id is there
  std::vector<RoundsFrom> forgotten{};               // removed, before `rounds` are inserted
  std::vector<job::RoundRecord> rounds{};            // inserted; the same round again replaces
  std::vector<job::ValidationRecord> validations{};  // likewise
  // Inserted; the same axis of the same plan again replaces.
  std::vector<job::DecisionRecord> decisions{};
  std::vector<job::NodeRecord> nodes{};  // inserted or replaced; one that says nothing is removed
  std::vector<job::MemoryRecord> memories{};  // inserted or replaced; an empty one is removed
  std::vector<job::PriorRecord> priors{};     // likewise
};

}  // namespace tactus::job
