#include "policies/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "policies/catalogue.h"
#include "policies/compatibility.h"
#include "policies/encodings.h"
#include "policies/planner_fields.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

// In the order in which they are asked. What changes most comes first: where the length of steps
// and a period could both be tried out, the former, for which the latter has to be right. How long
// an exchange takes is to be known before a period is chosen by it. The batch sizes, with which a
// first plan begins, come last.
constexpr std::array kAxesAsked = {Axis::kLearningRate, Axis::kEncoding, Axis::kSynchronization,
                                   Axis::kAggregation, Axis::kBatch};
static_assert(kAxesAsked.size() == kAxes.size());

// In the order in which a plan is made and made to follow: the learning rate comes last, and sees
// what the others have become.
constexpr std::array kAxesFollowed = {Axis::kBatch, Axis::kSynchronization, Axis::kAggregation,
                                      Axis::kEncoding, Axis::kLearningRate};
static_assert(kAxesFollowed.size() == kAxes.size());

// Grows when a field of a memory changes its meaning and keeps its name.
constexpr std::uint32_t kMemoryVersion = 2;

// Whose memory it is.
struct MemoryOwner {
  std::uint32_t version = kMemoryVersion;
  PlannerOptions options{};

  friend bool operator==(const MemoryOwner&, const MemoryOwner&) = default;
};
void Fields(auto& archive, Of<MemoryOwner> auto& owner) {
  archive("version", owner.version);
  archive("options", owner.options);
}

// What is frozen is not decided, but learned of as ever.
MemoryOwner OwnerOf(PlannerOptions options) {
  options.frozen.clear();
  return {.options = std::move(options)};
}

// Gives the plan the axis's value of another one, within what its own sizes allow. False, and
// nothing is changed, where that was made for other members.
bool Carry(const Plan& from, Axis axis, Plan& to) {
  switch (axis) {
    case Axis::kBatch:
      if (from.batch_sizes.size() != to.batch_sizes.size()) return false;
      to.batch_sizes = from.batch_sizes;
      break;
    case Axis::kSynchronization:
      if (from.graph && from.batch_sizes.size() != to.batch_sizes.size()) return false;
      Synchronize(to, from.synchronization, from.period);
      to.graph = from.graph;
      to.circle = from.circle;
      break;
    case Axis::kAggregation:
      to.aggregation = from.aggregation;
      break;
    case Axis::kLearningRate:
      to.learning_rate_rule = from.learning_rate_rule;
      break;
    case Axis::kEncoding:
      to.encoding = from.encoding;
      break;
  }
  return true;
}

// The batch of more members, in their proportions: as large as what those who stay had, where that
// is more. [samples]
std::vector<std::uint32_t> SizesOfMore(std::vector<std::uint32_t> sizes,
                                       const std::vector<std::uint32_t>& before) {
  const double had = std::accumulate(before.begin(), before.end(), 0.0);
  const double sum = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  if (had <= sum) return sizes;
  for (std::uint32_t& size : sizes) {
    size = static_cast<std::uint32_t>(std::lround(size * had / sum));
  }
  return sizes;
}

// Two steps to the later one's plan as one, with a decision an axis.
Revision Merged(Revision first, Revision then) {
  for (Decision& decision : then.decisions) {
    const auto same = std::ranges::find(first.decisions, decision.axis, &Decision::axis);
    if (same == first.decisions.end()) {
      first.decisions.push_back(std::move(decision));
      continue;
    }
    same->to = std::move(decision.to);
    same->reason += "; " + decision.reason;
  }
  first.plan = std::move(then.plan);
  std::erase_if(first.decisions, [](const Decision& one) { return one.from == one.to; });
  return first;
}

}  // namespace

Planner::Planner(const PlannerOptions& options)
    : options_(options),
      replicas_(options.batch.replica_members),
      seen_(options.synchronization.loss_floor, options.batch.replica_members),
      gains_(options.base_batch) {
  for (const Axis axis : kAxes) {
    const Policy* const policy = FindPolicy(axis, PolicyOf(options_, axis));
    TACTUS_CHECK(policy != nullptr);
    policies_[axis] = policy->make(options_);
  }
  for (const Axis axis : options_.frozen) frozen_[axis] = true;
}

Decision Planner::Draft(Axis axis, const Plan& from, const Plan& to) const {
  return {.plan_version = to.version,
          .axis = axis,
          .round = seen_.last_round(),
          .seconds = seen_.seconds(),
          .from = from.batch_sizes.empty() ? "" : ValueOf(from, axis),
          .to = ValueOf(to, axis)};
}

PerAxis<std::string> Planner::Follow(Plan& plan, Axis changed) const {
  PerAxis<std::string> reasons;
  for (const Axis axis : kAxesFollowed) {
    if (axis != changed && !Frozen(axis)) reasons[axis] = policies_[axis]->Follow(plan, seen_);
  }
  return reasons;
}

std::optional<Plan> Planner::Complete(const Plan& plan, Axis changed) const {
  Plan whole = plan;
  Follow(whole, changed);
  if (!Fits(whole, seen_.members()) || !Allowed(whole, FactsOf(options_))) return std::nullopt;
  return whole;
}

// What changes beside a trial leaves it as it is.
Trial Planner::GoesOn(const Plan& in_force) const {
  const bool kept = in_force.trial == Trial::kBegins || in_force.trial == Trial::kRuns;
  const bool runs = std::ranges::any_of(kAxes, [&](Axis axis) { return OnTrial(axis); });
  return kept && runs ? Trial::kRuns : Trial::kNone;
}

std::optional<Revision> Planner::Revise(const Plan& in_force, Axis axis, Proposal proposal) const {
  Revision revision{.plan = std::move(proposal.plan)};
  Plan& plan = revision.plan;
  plan.version = in_force.version + 1;
  plan.trial = proposal.trial != Trial::kNone ? proposal.trial : GoesOn(in_force);
  if (plan.trial == Trial::kUndone) {
    proposal.decision.reason += "; members go back to the parameters from before it";
  }
  const PerAxis<std::string> reasons = Follow(plan, axis);
  if (!Fits(plan, seen_.members()) || !Allowed(plan, FactsOf(options_))) return std::nullopt;
  plan.reason = proposal.decision.reason;
  for (const Axis each : kAxesAsked) {
    Decision decision = Draft(each, in_force, plan);
    if (decision.from == decision.to) continue;
    if (each == axis) {
      decision.inputs = std::move(proposal.decision.inputs);
      decision.metric = std::move(proposal.decision.metric);
      decision.predicted_gain = proposal.decision.predicted_gain;
      decision.alternatives = std::move(proposal.decision.alternatives);
      decision.reason = std::move(proposal.decision.reason);
    } else {
      decision.reason = reasons[each];
      // An axis that moved without being the one proposed did so in Follow(), which says why.
      TACTUS_CHECK(!decision.reason.empty());
      plan.reason += "; " + decision.reason;
    }
    revision.decisions.push_back(std::move(decision));
  }
  if (revision.decisions.empty()) return std::nullopt;
  return revision;
}

Plan Planner::FirstPlan(const StartingGroup& group, bool keep, PerAxis<std::string>* reasons) {
  // One replica has nobody to exchange with, whatever is frozen.
  const bool may_keep = keep && group.before && !seen_.alone();
  Plan plan;
  for (const Axis axis : kAxesFollowed) {
    (*reasons)[axis] = policies_[axis]->Start(plan, seen_);
    if (!may_keep || !Frozen(axis) || !Carry(*group.before, axis, plan)) continue;
    (*reasons)[axis] = "the " + NameOf(axis) + " is frozen and stays as it was";
  }
  return plan;
}

// What a policy finds for a group is mostly found anew for the next one; but what it found so far
// is the better guess to begin with than its first one. Sizes are shared out anew where some join.
// Each takes it up as the plan of another coordinator: what was on trial is over, with what it
// found. One replica runs what one can, which is no guess for more.
void Planner::GoOn(const Plan& before, bool unjudged, Plan& plan, PerAxis<std::string>& reasons) {
  Plan kept = before;
  kept.version = before.version + 1;
  kept.trial = Trial::kNone;
  if (kept.synchronization == plan.synchronization) {
    kept.graph = plan.graph;  // of that many, and of other ranks
    kept.circle = plan.circle;
  }
  // What the loss had not judged by then is not kept for its pace.
  if (unjudged) kept.encoding = plan.encoding;
  const bool grows = kept.batch_sizes.size() < plan.batch_sizes.size();
  if (grows && kept.batch_sizes.size() <= options_.batch.replica_members) return;
  if (grows) kept.batch_sizes = SizesOfMore(plan.batch_sizes, before.batch_sizes);
  if (seen_.alone() || !Obstacle(kept).empty()) return;
  for (const Axis axis : kAxes) {
    if (ValueOf(kept, axis) == ValueOf(plan, axis)) continue;
    policies_[axis]->Resume(kept);
    reasons[axis] = "the " + NameOf(axis) + " goes on as it was in the group before";
  }
  plan = std::move(kept);
}

Revision Planner::Start(const StartingGroup& starting) {
  StartingGroup group = starting;
  // What is frozen could not be taken back.
  if (Frozen(Axis::kSynchronization) || Frozen(Axis::kEncoding)) group.prior.reset();
  // It is of dense values.
  const bool dense = options_.encoding_policy == "auto" || options_.encoding_policy == "dense";
  const bool moves = !Frozen(Axis::kSynchronization) && !Frozen(Axis::kEncoding);
  if (!dense || !moves) group.exchange_seconds = 0;
  const bool unjudged = group.before && policies_[Axis::kEncoding]->OnTrial() &&
                        RowOf(group.before->encoding).for_auto == ForAuto::kByLoss;
  gains_.Forget();
  replicas_.Start();
  seen_.Start(group);
  Revision revision;
  PerAxis<std::string> reasons;
  revision.plan = FirstPlan(group, true, &reasons);
  // What is frozen may not go with what the user has the others be since.
  if (!Obstacle(revision.plan).empty()) revision.plan = FirstPlan(group, false, &reasons);
  // A job on record may be from before its choices were refused together.
  if (revision.plan.aggregation == Aggregation::kAdasum && !Obstacle(revision.plan).empty()) {
    revision.plan.aggregation = Aggregation::kAverage;
    reasons[Axis::kAggregation] =
        "average: " + (seen_.alone() ? std::string(seen_.WhyAlone())
                                     : "adasum no longer goes with the rest of the plan");
  }
  if (!Obstacle(revision.plan).empty()) {
    reasons[Axis::kEncoding] = "dense: " + std::string(NameOf(revision.plan.encoding)) +
                               " no longer goes with the rest of the plan";
    revision.plan.encoding = Encoding::kDense;
  }
  if (group.goes_on && group.before) GoOn(*group.before, unjudged, revision.plan, reasons);
  TACTUS_CHECK(Fits(revision.plan, group.members));
  TACTUS_CHECK(Allowed(revision.plan, FactsOf(options_)));
  revision.plan.reason = reasons[Axis::kBatch];
  for (const Axis axis : kAxes) {
    Decision decision = Draft(axis, {}, revision.plan);
    decision.reason = std::move(reasons[axis]);
    revision.decisions.push_back(std::move(decision));
  }
  seen_.Expect(revision.plan);
  return revision;
}

std::string Planner::Memory() const {
  MemoryWriter memory;
  memory.Write(OwnerOf(options_));
  memory.Seal();
  memory.Write(*this);
  return memory.Finish();
}

std::string Planner::Read(std::string_view memory) {
  MemoryReader reader(memory);
  if (!reader.ok()) return "it is damaged";
  MemoryOwner owner;
  reader.Read(owner);
  reader.CheckSeal();
  if (!reader.ok() || owner.version != kMemoryVersion) return "it is of another version";
  if (owner != OwnerOf(options_)) return "it was learned under other options";
  reader.Read(*this);
  return reader.Finish() ? "" : "it is of another version, or its numbers contradict each other";
}

// Into a fresh one first: what cannot be read whole is not to be read at all.
std::string Planner::Recall(std::string_view memory, std::uint32_t members) {
  Planner fresh(options_);
  if (std::string why = fresh.Read(memory); !why.empty()) return why;
  const std::uint32_t learned = fresh.seen_.members();
  if (members != 0 && learned != members) {
    return "it is of a group of " + std::to_string(learned) + ", and one of " +
           std::to_string(members) + " goes on";
  }
  return Read(memory);
}

void Planner::Resume(const Plan& in_force, const KnownEncodings& encodings) {
  if (seen_.members() == 0) LearnAnew(in_force);
  KnownEncodings known = encodings;
  if (known) known->push_back(in_force.encoding);
  seen_.Know(std::move(known));
}

void Planner::LearnAnew(const Plan& in_force) {
  Start({.members = static_cast<std::uint32_t>(in_force.batch_sizes.size())});
  // In the place of the plan that Start() drafted, which nobody runs.
  seen_.Expect(in_force);
  for (const Axis axis : kAxes) policies_[axis]->Resume(in_force);
}

void Planner::Observe(const Report& report) {
  if (report.rank >= seen_.members()) return;
  for (const Report& each : replicas_.Observe(report)) {
    for (const Axis axis : kAxes) policies_[axis]->Observe(each);
    seen_.Observe(each);
  }
}

bool Planner::OnTrial(Axis axis) const { return !Frozen(axis) && policies_[axis]->OnTrial(); }

bool Planner::OtherOnTrial(Axis axis) const {
  return std::ranges::any_of(kAxes, [&](Axis other) { return other != axis && OnTrial(other); });
}

std::optional<Proposal> Planner::Ask(Axis axis, const Plan& in_force, const Observations& seen) {
  const std::function<std::optional<Plan>(const Plan&)> complete = [this, axis](const Plan& plan) {
    return Complete(plan, axis);
  };
  return policies_[axis]->Decide({.in_force = in_force,
                                  .seen = seen,
                                  .complete = complete,
                                  .other_on_trial = OtherOnTrial(axis)});
}

std::optional<Revision> Planner::Decide(const Plan& in_force, std::optional<double> seconds_left) {
  if (!Fits(in_force, seen_.members())) return std::nullopt;
  seen_.Outlook(seconds_left);
  seen_.Expect(in_force);
  gains_.Step(seen_);
  for (const Axis axis : kAxesAsked) {
    if (Frozen(axis)) continue;
    std::optional<Proposal> proposal = Ask(axis, in_force, seen_);
    if (!proposal) continue;
    const std::optional<double> transfer = proposal->transfer_seconds;
    std::optional<Revision> revision = Revise(in_force, axis, *std::move(proposal));
    if (!revision) continue;
    if (transfer) Join(in_force, axis, *transfer, *revision);
    gains_.Follow(revision->decisions, seen_);
    seen_.Expect(revision->plan);
    return revision;
  }
  return std::nullopt;
}

// It would be chosen some rounds later, when the transfer is measured; but those are of the longest
// kind. The gain of both is told of the period.
void Planner::Join(const Plan& in_force, Axis changed, double transfer_seconds,
                   Revision& revision) {
  constexpr Axis kAxis = Axis::kSynchronization;
  if (Frozen(kAxis) || OnTrial(kAxis)) return;
  Plan before = revision.plan;
  before.version = in_force.version;
  Observations then = seen_;
  then.Expect(revision.plan);
  then.Foresee(transfer_seconds);
  std::optional<Proposal> proposal = Ask(kAxis, before, then);
  if (!proposal) return;
  std::optional<Revision> joined = Revise(before, kAxis, *std::move(proposal));
  if (!joined) return;
  joined->plan.trial = revision.plan.trial;
  joined->plan.reason = revision.plan.reason + "; " + joined->plan.reason;
  const auto first = std::ranges::find(revision.decisions, changed, &Decision::axis);
  const auto period = std::ranges::find(joined->decisions, kAxis, &Decision::axis);
  if (first != revision.decisions.end() && period != joined->decisions.end()) {
    period->predicted_gain = (1 + period->predicted_gain) * (1 + first->predicted_gain) - 1;
    first->metric.clear();
  }
  revision = Merged(std::move(revision), *std::move(joined));
}

std::string Planner::Obstacle(const Plan& plan) const {
  if (plan.batch_sizes.size() != seen_.members()) {
    return std::to_string(plan.batch_sizes.size()) + " batch sizes, and the group has " +
           std::to_string(seen_.members()) + " members";
  }
  if (!Fits(plan, seen_.members())) {
    return "a round of " + ValueOf(plan, Axis::kSynchronization) + " with batch sizes of " +
           ValueOf(plan, Axis::kBatch) + ", allowed are 1 to " + std::to_string(kRoundSamplesMax) +
           " samples a round";
  }
  if (!seen_.group().Knows(plan.encoding)) {
    return "not all workers know the encoding " + std::string(NameOf(plan.encoding));
  }
  const std::vector<Conflict> conflicts = ConflictsOf(plan, FactsOf(options_));
  return conflicts.empty() ? "" : conflicts.front().field + ": " + conflicts.front().reason;
}

void Planner::Promise(const Plan& in_force, const Plan& to, Decision& decision) const {
  if (!seen_.SpeedsKnown() || !seen_.TransferSeconds()) return decision.metric.clear();
  const auto rate = [&](const Plan& plan) {
    const RoundForecast round = Forecast(plan, seen_, *seen_.TransferSeconds());
    if (decision.metric != kSamplesPerSecond) return UsefulRate(round, Worth(plan));
    return round.updates * round.samples / round.seconds;
  };
  decision.predicted_gain = rate(to) / rate(in_force) - 1;
}

BatchWorth Planner::Worth(const Plan& plan) const {
  return {.rule = plan.learning_rate_rule,
          .base_batch = static_cast<double>(options_.base_batch),
          .noise_scale = seen_.NoiseScale()};
}

Undoing Planner::Undo(const Plan& in_force, const Decision& decision) const {
  const Axis axis = decision.axis;
  std::optional<Plan> plan = WithValue(in_force, axis, decision.from);
  if (!plan) return {.refusal = "the value before it is not known here: " + decision.from};
  // What is not told of delayed rounds is the job's bound on their steps.
  if (axis == Axis::kSynchronization && plan->synchronization == Synchronization::kDelayed) {
    Synchronize(*plan, Synchronization::kDelayed, options_.synchronization.steps_max);
  }
  if (ValueOf(*plan, axis) == ValueOf(in_force, axis)) {
    return {.refusal = "the " + NameOf(axis) + " is " + decision.from + " already"};
  }
  Plan whole = *plan;
  Follow(whole, axis);
  if (const std::string obstacle = Obstacle(whole); !obstacle.empty()) {
    return {.refusal = "no group can run what would come of it: " + obstacle};
  }
  Proposal proposal{.plan = *std::move(plan)};
  const bool of_samples = decision.metric == kSamplesPerSecond;
  proposal.decision = {.metric = of_samples ? kSamplesPerSecond : kUsefulSamplesPerSecond,
                       .alternatives = {{ValueOf(in_force, axis), 0}},
                       .reason = "reverted by a request: decision " +
                                 IdOf({.plan_version = decision.plan_version, .axis = axis}) +
                                 ", which went to " + decision.to +
                                 ", is taken back, and it stays so until it is set free"};
  Promise(in_force, whole, proposal.decision);
  return {.revision = Revise(in_force, axis, std::move(proposal))};
}

std::optional<Revision> Planner::Revert(const Plan& in_force, const Decision& decision) {
  seen_.Expect(in_force);
  gains_.Step(seen_);
  Freeze(decision.axis);
  std::optional<Revision> revision = Undo(in_force, decision).revision;
  if (!revision) return std::nullopt;
  policies_[decision.axis]->Resume(revision->plan);
  gains_.Follow(revision->decisions, seen_);
  seen_.Expect(revision->plan);
  return revision;
}

std::optional<MeasuredGroup> Planner::Measured(const Plan& in_force) const {
  const std::optional<double> transfer = seen_.TransferSeconds();
  if (!Fits(in_force, seen_.members()) || !seen_.SpeedsKnown() || !transfer) return std::nullopt;
  return MeasuredGroup{.plan = in_force,
                       .speeds = seen_.speeds(),
                       .transfer_seconds = *transfer,
                       .worth = Worth(in_force),
                       .batch = options_.batch};
}

std::optional<Prior> Planner::Learned() const {
  constexpr Axis kAxis = Axis::kSynchronization;
  return Frozen(kAxis) ? std::nullopt : policies_[kAxis]->Learned(seen_);
}

}  // namespace tactus::policies
