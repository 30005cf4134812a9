#include "coordinator/job/record_keeper.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/eta.h"
#include "coordinator/job/links.h"
#include "coordinator/job/mesh_places.h"
#include "coordinator/job/reversal.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/job/transport_choice.h"
#include "coordinator/job/wording.h"
#include "coordinator/job/worker_ids.h"
#include "policies/encodings.h"

namespace tactus::job {
namespace {

// Freezing an axis or freeing it needs no new plan.
bool AdaptsAlike(policies::PlannerOptions a, const policies::PlannerOptions& b) {
  a.frozen = b.frozen;
  return a == b;
}

// A job begins anew: what counts over all attempts goes on.
Progress FromNothing(const Progress& former) {
  return {.skipped_rounds = former.skipped_rounds,
          .repeated_passes = former.repeated_passes,
          .unrecorded_rounds = former.unrecorded_rounds,
          .validation = {.count = former.validation.count, .seconds = former.validation.seconds}};
}

// Numbers of workers are outside input.
policies::PlannerOptions WithFacts(const ProgramFacts& facts, policies::PlannerOptions adapt) {
  adapt.batch.per_worker = std::clamp(facts.batch, adapt.batch.batch_min, adapt.batch.batch_max);
  adapt.base_batch = std::clamp(facts.batch, 1u, adapt.batch.batch_max);
  adapt.optimizer = facts.optimizer;
  adapt.momentum = std::isfinite(facts.momentum) ? std::clamp(facts.momentum, 0.0, 1.0) : 0;
  adapt.clip_norm = facts.clip_norm;
  return adapt;
}

// "regrouping: node b is drained; 2 of 3 workers go on from round 12, and 1 joins".
std::string GoingOnWords(const RecordKeeper::Regrouping& regrouping, std::size_t former) {
  const std::size_t stay = regrouping.ranks.size();
  const std::size_t join = regrouping.newcomers.size();
  std::uint64_t newest = 0;
  for (const LostMember& member : regrouping.lost) {
    newest = std::max(newest, member.message.rounds);
  }
  std::string words = "regrouping: " + regrouping.reason + "; " + std::to_string(stay) + " of " +
                      WorkerCount(former) + (stay == 1 ? " goes on" : " go on") + " from round " +
                      std::to_string(newest);
  if (join > 0) words += ", and " + std::to_string(join) + (join == 1 ? " joins" : " join");
  return words;
}

}  // namespace

RecordKeeper::RecordKeeper(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy,
                           Priors& priors, WallTime wall_offset, const JobDeadlines& deadlines)
    : priors_(priors),
      wall_offset_(wall_offset),
      deadlines_(deadlines),
      record_(std::move(record)),
      steering_(std::move(policy), record_.newest_plan.version) {}

void RecordKeeper::Enter(JobState state, std::string reason) {
  TACTUS_CHECK(MayFollow(record_.state, state));
  record_.state = state;
  record_.state_reason = std::move(reason);
}

void RecordKeeper::Persist(Turn turn) {
  RefreshProgress(turn.now);
  ++record_.revision;
  record_.update_time = WallAt(turn.now);
  if (IsFinal(record_.state)) {
    record_.end_time = record_.update_time;
    EndAttempt(record_, record_.state_reason, record_.end_time);
    turn.actions.push_back(job::PersistMemory{{.job = record_.id}});
    // Of a run that failed nobody should begin with what it did.
    if (record_.result) HandOn(turn);
  }
  persisted_ = turn.now;
  turn.actions.push_back(PersistJob{record_});
}

// `announced` is the version that users see, and what they compare theirs with before a change: it
// grows with what they are told, not with what is only kept for a restart.
void RecordKeeper::Announce(Turn turn) {
  record_.announced = record_.revision + 1;
  Persist(turn);
  turn.actions.push_back(PublishJob{record_});
}

void RecordKeeper::RefreshProgress(Instant now) {
  if (!tracker_) return;
  Progress& progress = record_.progress;
  const double elapsed_so_far = progress.elapsed_seconds;
  progress = tracker_->progress();
  progress.eta_seconds.reset();
  progress.plan = steering_.adopted();
  if (!record_.groups.empty()) record_.groups.back().last_plan = progress.plan.version;
  for (std::size_t rank = 0; rank < record_.members.size(); ++rank) {
    progress.workers[rank].batch_size = progress.plan.batch_sizes[rank];
  }
  // A record of an older version has only the start of its first and only group.
  const bool first =
      record_.suspensions == 0 && record_.attempts.empty() && record_.group_start_time == 0;
  const WallTime since = first ? record_.start_time : record_.group_start_time;
  // What was banked stands: the workers only leave now.
  progress.elapsed_seconds = Secured() ? elapsed_so_far : record_.elapsed_before_seconds;
  if (since != 0 && !Secured()) {
    const Duration elapsed(WallAt(now) - since);
    progress.elapsed_seconds += std::max(ToSeconds(elapsed), 0.0);
  }
  if (record_.state == JobState::kRunning) {
    progress.eta_seconds = ForeseeEnd(record_.settings, progress, tracker_->RoundSeconds());
  }
}

void RecordKeeper::BeginGroup(std::vector<MemberRecord> members, Instant now) {
  record_.members = std::move(members);
  BeginAttempt(record_, WallAt(now));
  Rest(std::nullopt);
  ForgetEnding();
  record_.suspension.reset();
  record_.elapsed_before_seconds = record_.progress.elapsed_seconds;
  record_.group_start_time = 0;
  spikes_.Reset();  // it may go on from where the loss was higher
  tracker_.reset();
}

std::optional<policies::Conflict> RecordKeeper::TakeFacts(const ProgramFacts& facts) {
  const policies::PlannerOptions adapt = WithFacts(facts, record_.settings.adapt);
  const std::vector<policies::Conflict> conflicts = policies::ConflictsOf(adapt);
  if (!conflicts.empty()) return conflicts.front();
  if (adapt == record_.settings.adapt) return std::nullopt;
  record_.settings.adapt = adapt;
  steering_.Replace(std::make_unique<policies::Planner>(adapt), std::nullopt);
  return std::nullopt;
}

policies::Plan RecordKeeper::FormGroup(const policies::StartingGroup& group,
                                       const ReadyMessage& loaded, const TransportRecord& transport,
                                       Turn turn) {
  ++record_.generation;
  policies::StartingGroup starting = group;
  starting.before = PlanOfFormerGroup();
  starting.prior = PriorOfKind(turn);
  const Exchange dense = {record_, loaded.parameters, transport.kind};
  starting.exchange_seconds = ExchangeSeconds(dense, priors_);
  starting.exchange_values = static_cast<double>(dense.parameters);
  const policies::Revision first = steering_.Start(starting);
  record_.newest_plan = first.plan;
  Progress progress = record_.checkpoint ? record_.progress : FromNothing(record_.progress);
  progress.workers.clear();  // of the group before, which had other members
  progress.epoch_samples = loaded.train_samples;
  record_.loaded = loaded;
  // Not what one member knows: what all of them do.
  const Encodings known = group.encodings.value_or(Encodings());
  record_.loaded.encodings.clear();
  for (const policies::Encoding each : known) record_.loaded.encodings.emplace_back(NameOf(each));
  tracker_.emplace(group.members, progress);
  NoteGroup(progress.rounds, transport, known);
  record_.state_reason = "forming a group of " + WorkerCount(group.members);
  Announce(turn);
  // What a former group did beyond the checkpoint, as it was lost or left before its first round
  // was known, would stand among this one's rounds.
  if (record_.generation > 1) {
    turn.actions.push_back(ForgetRounds{.job = record_.id, .from = progress.rounds});
  }
  PublishFirst(first, turn);
  return first.plan;
}

// Of a group, whose record with it is announced.
void RecordKeeper::PublishFirst(const policies::Revision& first, Turn turn) {
  PersistDecisions(first.decisions, turn);
  PersistMemory(turn);
  turn.actions.push_back(PublishDecision{.job = record_.id, .plan = first.plan});
}

// Rounds that some members reported and others will not are no part of the history; the progress
// goes on with what all reported, and reaches them with the next round.
void RecordKeeper::Regroup(const Regrouping& regrouping, Turn turn) {
  RefreshProgress(turn.now);
  const std::size_t former = record_.members.size();
  Progress progress = tracker_->progress();
  policies::StartingGroup group{.before = PlanOfSurvivors(regrouping.ranks), .goes_on = true};
  std::vector<MemberRecord> members;
  std::vector<WorkerProgress> workers;
  for (const std::uint32_t rank : regrouping.ranks) {
    members.push_back(record_.members[rank]);
    workers.push_back(progress.workers[rank]);
    workers.back().samples = 0;  // since this group meets
  }
  for (const Joiner& newcomer : regrouping.newcomers) {
    members.push_back(newcomer.member);
    members.back().nccl_version = newcomer.ready->nccl_version;
    workers.push_back({.samples_per_second = newcomer.ready->samples_per_second});
  }
  for (const WorkerProgress& worker : workers) group.speeds.push_back(worker.samples_per_second);
  group.members = static_cast<std::uint32_t>(members.size());
  progress.workers = std::move(workers);
  record_.worker_ordinals = NextOrdinal(record_);
  record_.members = std::move(members);
  ++record_.generation;
  if (regrouping.resized) {
    ++record_.resizes;
    record_.resize_reason = "from " + std::to_string(former) + " to " + WorkerCount(group.members) +
                            " without a stop: " + regrouping.reason;
  } else {
    ++record_.regroups;
    record_.regroup_reason = regrouping.reason;
    const policies::Encoding encoding = record_.newest_plan.encoding;
    const bool owed = policies::RowOf(encoding).deviation == policies::Deviation::kResidual;
    if (owed && regrouping.ranks.size() < former) {
      record_.regroup_reason +=
          "; what " + std::string(policies::NameOf(encoding)) + " had left out there is lost";
    }
  }
  BeginAttempt(record_, WallAt(turn.now));
  ForgetEnding();
  record_.lost = regrouping.lost;
  const TransportRecord transport = TransportOfNext(regrouping);
  group.encodings = CommonEncodings();
  const policies::Revision first = steering_.Start(group);
  record_.newest_plan = first.plan;
  tracker_.emplace(group.members, progress, tracker_->exact());
  NoteGroup(progress.rounds, transport, *group.encodings);
  record_.state_reason = GoingOnWords(regrouping, former);
  Announce(turn);
  PublishFirst(first, turn);
}

// What those who are left of a group have in common is what it had.
TransportRecord RecordKeeper::TransportOfNext(const Regrouping& regrouping) const {
  if (!regrouping.resized && regrouping.newcomers.empty()) {
    return record_.groups.empty() ? TransportRecord{} : record_.groups.back().transport;
  }
  std::vector<std::string> versions;
  for (const MemberRecord& member : record_.members) versions.push_back(member.nccl_version);
  return ChooseTransport({.members = record_.members,
                          .nccl_versions = versions,
                          .encrypted = record_.settings.encrypted});
}

void RecordKeeper::SetJoiners(std::vector<MemberRecord> joiners) {
  if (joiners.empty() && record_.joiners.empty()) return;
  record_.joiners.insert(record_.joiners.end(), joiners.begin(), joiners.end());
  record_.worker_ordinals = NextOrdinal(record_);
  record_.joiners = std::move(joiners);
}

// The newest, with the sizes of those who stay.
policies::Plan RecordKeeper::PlanOfSurvivors(const std::vector<std::uint32_t>& ranks) {
  policies::Plan plan = record_.newest_plan;
  const std::vector<std::uint32_t> sizes = std::exchange(plan.batch_sizes, {});
  for (const std::uint32_t rank : ranks) plan.batch_sizes.push_back(sizes[rank]);
  const bool others = ranks.size() != sizes.size();
  if (others && record_.reversal && record_.reversal->axis == policies::Axis::kBatch) {
    record_.reversal.reset();
  }
  return plan;
}

// Sizes are of devices: those of others are not gone on with.
std::optional<policies::Plan> RecordKeeper::PlanOfFormerGroup() {
  if (record_.groups.empty() || record_.newest_plan.version == 0) return std::nullopt;
  policies::Plan plan = record_.newest_plan;
  if (SameDevices(record_.groups.back().members, record_.members)) return plan;
  plan.batch_sizes.clear();
  if (record_.reversal && record_.reversal->axis == policies::Axis::kBatch) {
    record_.reversal.reset();
  }
  return plan;
}

// For the first group alone: what the job has learned itself since is of more worth.
std::optional<policies::Prior> RecordKeeper::PriorOfKind(Turn turn) const {
  if (record_.generation > 1 || record_.settings.kind.empty()) return std::nullopt;
  const std::string bytes = priors_.Find(PriorKey(record_.settings.kind, record_.members));
  if (bytes.empty()) return std::nullopt;
  policies::ReadPrior read = policies::PriorOf(bytes);
  if (!read.prior) {
    turn.actions.push_back(PublishRelearning{
        .job = record_.id,
        .reason = "what a former job of this kind found is left out: " + read.refusal});
  }
  return read.prior;
}

// Of the former groups the newest are kept, as many as kFormerMembersMax leaves room for.
// Who did not say knows dense alone.
RecordKeeper::Encodings RecordKeeper::CommonEncodings() const {
  return record_.groups.empty() ? Encodings() : record_.groups.back().encodings;
}

void RecordKeeper::NoteGroup(std::uint64_t first_round, const TransportRecord& transport,
                             Encodings encodings) {
  std::vector<GroupRecord>& groups = record_.groups;
  std::size_t members = 0;  // of the groups that stay
  auto kept = groups.end();
  while (kept != groups.begin()) {
    members += std::prev(kept)->members.size();
    if (members > kFormerMembersMax) break;
    --kept;
  }
  groups.erase(groups.begin(), kept);
  groups.push_back({.generation = record_.generation,
                    .first_round = first_round,
                    .members = record_.members,
                    .transport = transport,
                    .mesh = MeshWords(record_.settings, record_.members),
                    .encodings = std::move(encodings),
                    .first_plan = record_.newest_plan.version});
}

void RecordKeeper::BeginRunning(const policies::Report& first, Turn turn) {
  // The round is over when its report comes; the start is its beginning. The length is outside
  // input, and no round began before the group was started.
  const double seconds = std::isfinite(first.round_seconds) ? first.round_seconds : 0;
  const Duration length = Seconds(std::clamp(seconds, 0.0, ToSeconds(deadlines_.start)));
  record_.group_start_time = WallAt(turn.now - length);
  if (record_.start_time == 0) record_.start_time = record_.group_start_time;
  Enter(JobState::kRunning, "training on " + WorkerCount(record_.members.size()));
  Announce(turn);
}

void RecordKeeper::Recall(const std::string& memory, Turn turn) {
  if (memory.empty()) return;
  const bool goes_on = record_.state == JobState::kRunning ||
                       record_.state == JobState::kStopping ||
                       (record_.state == JobState::kSuspending && !Secured());
  std::string why =
      steering_.Recall(memory, goes_on ? static_cast<std::uint32_t>(record_.members.size()) : 0);
  if (why.empty()) return;
  turn.actions.push_back(job::PersistMemory{{.job = record_.id}});
  turn.actions.push_back(PublishRelearning{.job = record_.id, .reason = std::move(why)});
}

void RecordKeeper::ResumeGroup() {
  steering_.Resume(record_.progress.plan, record_.newest_plan, CommonEncodings());
  tracker_.emplace(static_cast<std::uint32_t>(record_.members.size()), record_.progress);
}

void RecordKeeper::SetCheckpoint(CheckpointRecord checkpoint, Instant now) {
  std::vector<CheckpointRecord>& former = record_.former_checkpoints;
  if (record_.checkpoint) former.insert(former.begin(), *record_.checkpoint);
  // Records of older versions say of none that it is kept.
  const std::size_t kept = std::max(record_.settings.checkpoints_kept, 1u) - 1;
  former.resize(std::min(former.size(), kept));
  checkpoint.time = WallAt(now);
  record_.checkpoint = std::move(checkpoint);
}

// Numbers of workers are outside input.
bool RecordKeeper::NoteCheckpoint(const CheckpointedMessage& message, Instant now) {
  const std::uint64_t newest = record_.checkpoint ? record_.checkpoint->rounds : 0;
  if (message.rounds <= newest || message.sha256.empty()) return false;
  RefreshProgress(now);
  const double seconds = std::isfinite(message.train_seconds) ? message.train_seconds : 0;
  const double elapsed = record_.progress.elapsed_seconds;
  SetCheckpoint({.sha256 = message.sha256,
                 .size_bytes = message.size_bytes,
                 .rounds = message.rounds,
                 .epoch = message.epochs,
                 .epoch_consumed = message.epoch_consumed,
                 .samples = message.samples_global,
                 .loss = std::isfinite(message.train_loss) ? message.train_loss : 0,
                 .elapsed_seconds = std::clamp(
                     seconds, std::min(record_.elapsed_before_seconds, elapsed), elapsed)},
                now);
  return true;
}

// A file that is damaged will be so at the next attempt, too. Without another one the job keeps it,
// as people may mend what a retry cannot.
std::string RecordKeeper::GiveUpCheckpoint(const std::string& reason) {
  std::vector<CheckpointRecord>& former = record_.former_checkpoints;
  if (!record_.checkpoint || former.empty()) return reason;
  const std::uint64_t rounds = record_.checkpoint->rounds;
  // Its rounds are no progress when they are done anew.
  record_.fruitless_rounds = std::max(record_.fruitless_rounds, rounds);
  record_.checkpoint = std::move(former.front());
  former.erase(former.begin());
  return "the checkpoint after " + std::to_string(rounds) + " rounds was given up: " + reason;
}

// Where samples are passed over, those before the rise are, too: they are what nobody can tell from
// those that brought it about.
bool RecordKeeper::RollBack(const policies::LossSpike& spike, const std::string& reason,
                            Instant now) {
  if (record_.rollback) return false;
  std::vector<CheckpointRecord> kept = record_.former_checkpoints;
  if (record_.checkpoint) kept.insert(kept.begin(), *record_.checkpoint);
  // Of a rise the first rounds are in a block that was not high yet.
  std::erase_if(kept, [&](const CheckpointRecord& one) {
    return one.rounds + policies::LossSpikes::kBlock > spike.round;
  });
  record_.rollback = Rollback{.reason = reason};
  if (kept.empty()) return false;
  RefreshProgress(now);
  const Progress& progress = record_.progress;
  const auto position = [&](std::uint64_t epoch, std::uint64_t consumed) {
    return epoch * progress.epoch_samples + consumed;
  };
  const CheckpointRecord& from = kept.front();
  record_.rollback->checkpoint = from.sha256;
  record_.rollback->skip_samples =
      position(progress.epoch, progress.epoch_consumed) - position(from.epoch, from.epoch_consumed);
  record_.checkpoint = from;
  kept.erase(kept.begin());
  record_.former_checkpoints = std::move(kept);
  return true;
}

// What the next group goes on from has the time up to its last round, and `stop.time` counts from
// there: writing the checkpoint and bringing it here is no training.
void RecordKeeper::Secure(const CheckpointRecord& checkpoint, double train_seconds, Instant now) {
  SetCheckpoint(checkpoint, now);
  RefreshProgress(now);
  double& elapsed = record_.progress.elapsed_seconds;
  if (std::isfinite(train_seconds)) {  // outside input
    elapsed = std::clamp(train_seconds, std::min(record_.elapsed_before_seconds, elapsed), elapsed);
  }
  const Progress& reached = record_.progress;
  record_.checkpoint->epoch = reached.epoch;
  record_.checkpoint->epoch_consumed = reached.epoch_consumed;
  record_.checkpoint->samples = reached.samples;
  record_.checkpoint->loss = reached.loss;
  record_.checkpoint->elapsed_seconds = reached.elapsed_seconds;
  record_.suspension->secured = true;
}

bool RecordKeeper::LoseGroup(const std::string& reason, bool excused, Instant now) {
  RefreshProgress(now);
  if (!excused && !CountLoss(record_)) return false;
  EndAttempt(record_, reason, WallAt(now));
  tracker_.reset();
  ForgetEnding();
  GoBackToCheckpoint(record_);
  return true;
}

// Nothing of it becomes a result; what it kept on its way stays.
void RecordKeeper::ForgetEnding() {
  record_.snapshots = SnapshotsOf(record_);
  record_.ending = {};
  record_.lost.clear();
}

void RecordKeeper::Rest(std::optional<Instant> until) {
  record_.retry_time = until ? WallAt(*until) : 0;
}

void RecordKeeper::EndGroup() {
  tracker_.reset();
  if (!record_.checkpoint) {
    record_.progress = FromNothing(record_.progress);
  } else {
    record_.progress.rounds = record_.checkpoint->rounds;  // some reports may not have come
  }
}

bool RecordKeeper::Add(const policies::Report& report, Turn turn) {
  steering_.Observe(report);
  std::optional<RoundRecord> round = tracker_->Add(report, turn.now);
  if (!round) return false;
  round->job = record_.id;
  steering_.RoundDone(round->plan_version);
  spike_ = spikes_.Add(round->round, report.loss_mean_global, steering_.adopted());
  turn.actions.push_back(PersistRound{*std::move(round)});
  return true;
}

void RecordKeeper::Add(const ValidatedMessage& message, Turn turn) {
  std::optional<ValidationRecord> validation = tracker_->Add(message);
  if (!validation) return;
  validation->job = record_.id;
  turn.actions.push_back(PersistValidation{*validation});
}

std::optional<policies::Plan> RecordKeeper::Decide(Turn turn) {
  const bool wished = record_.reversal.has_value();
  const std::optional<policies::Revision> revision = NextPlan();
  const std::vector<policies::Decision> measured = steering_.TakeMeasured();
  PersistDecisions(measured, turn);
  if (!revision) {
    if (!measured.empty()) PersistMemory(turn);
    // The group that came meanwhile cannot do it.
    if (wished && !record_.reversal) Persist(turn);
    return std::nullopt;
  }
  record_.newest_plan = revision->plan;
  Persist(turn);
  PersistDecisions(revision->decisions, turn);
  PersistMemory(turn);
  turn.actions.push_back(PublishDecision{.job = record_.id, .plan = revision->plan});
  return revision->plan;
}

// A user's wish comes before what the policies would do next.
std::optional<policies::Revision> RecordKeeper::NextPlan() {
  if (!record_.reversal || !steering_.Due()) {
    return steering_.Decide(record_.progress.eta_seconds);
  }
  return steering_.Revert(*std::exchange(record_.reversal, std::nullopt));
}

std::string RecordKeeper::WhyNotReverted(const policies::Decision& decision) const {
  std::string reason = job::WhyNotReverted(record_, decision, steering_.adopted().version);
  return reason.empty() ? steering_.Undo(decision).refusal : reason;
}

bool RecordKeeper::Revert(const DecisionReverted& event) {
  std::vector<std::string>& heard = record_.revert_requests;
  if (std::ranges::find(heard, event.request_id) != heard.end()) return false;
  if (!event.request_id.empty()) heard.push_back(event.request_id);
  if (heard.size() > kRevertRequestsMax) heard.erase(heard.begin());
  record_.spec = event.spec;
  Freeze(record_.settings, event.decision.axis);
  steering_.Freeze(event.decision.axis);
  record_.reversal = event.decision;
  return true;
}

const policies::Plan* RecordKeeper::Travelling() const {
  const bool arrived = steering_.newest().version == steering_.adopted().version;
  return arrived ? nullptr : &steering_.newest();
}

void RecordKeeper::PersistDecisions(const std::vector<policies::Decision>& decisions, Turn turn) {
  for (const policies::Decision& decision : decisions) {
    turn.actions.push_back(PersistDecision{.job = record_.id, .decision = decision});
  }
}

void RecordKeeper::PersistMemory(Turn turn) {
  remembered_ = turn.now;
  turn.actions.push_back(job::PersistMemory{{.job = record_.id, .memory = steering_.Memory()}});
}

// Of the group that there is: what was found is true of its devices.
void RecordKeeper::HandOn(Turn turn) {
  handed_on_ = turn.now;
  if (!tracker_ || record_.settings.kind.empty()) return;
  NoteLinks(record_.members, tracker_->progress().workers, priors_, turn.actions);
  const std::optional<policies::Prior> prior = steering_.Learned();
  if (!prior) return;
  priors_.Put(PriorKey(record_.settings.kind, record_.members), policies::BytesOf(*prior),
              turn.actions);
}

void RecordKeeper::ShareProgress(Turn turn) {
  if (published_ && turn.now - *published_ < deadlines_.progress_publish) return;
  published_ = turn.now;
  if (turn.now - remembered_ >= deadlines_.memory_persist) PersistMemory(turn);
  if (turn.now - handed_on_ >= deadlines_.prior_persist) HandOn(turn);
  if (turn.now - persisted_ >= deadlines_.progress_persist) {
    Persist(turn);
  } else {
    RefreshProgress(turn.now);
  }
  turn.actions.push_back(PublishProgress{.job = record_.id, .progress = record_.progress});
}

void RecordKeeper::Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy) {
  JobSettings settings = event.settings;
  if (record_.loaded.program) {
    settings.adapt = WithFacts(*record_.loaded.program, settings.adapt);
    if (policy != nullptr) policy = std::make_unique<policies::Planner>(settings.adapt);
  }
  const bool alike = AdaptsAlike(settings.adapt, record_.settings.adapt);
  record_.spec = event.spec;
  record_.settings = std::move(settings);
  record_.labels = event.labels;
  const std::vector<policies::Axis>& frozen = event.settings.adapt.frozen;
  // Set free again before its plan was made: the wish is taken back.
  if (record_.reversal && std::ranges::find(frozen, record_.reversal->axis) == frozen.end()) {
    record_.reversal.reset();
  }
  if (policy == nullptr) return;
  std::optional<policies::StartingGroup> group;
  if (tracker_ && !alike) {
    group.emplace().members = static_cast<std::uint32_t>(record_.members.size());
    for (const WorkerProgress& worker : tracker_->progress().workers) {
      group->speeds.push_back(worker.samples_per_second);
    }
  }
  steering_.Replace(std::move(policy), group);
}

}  // namespace tactus::job
