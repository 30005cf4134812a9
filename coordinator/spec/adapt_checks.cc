#include "coordinator/spec/adapt_checks.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "agent/engine/combine/encodings.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/mesh_checks.h"
#include "policies/axes.h"
#include "policies/compatibility.h"
#include "policies/encodings.h"
#include "policies/figures.h"
#include "policies/learning_rate.h"
#include "policies/mixing.h"
#include "policies/plan.h"
#include "policies/post_local_synchronization.h"

namespace tactus::spec {
namespace {

constexpr std::uint64_t kBatchMax = 1u << 20;
constexpr int kBoundariesMax = 64;

void CheckBatch(const v1::BatchAxis& batch, FieldChecks& checks) {
  const std::string field = "adapt.batch.";
  for (const char* name : {"per_worker", "min", "max"}) {
    if (!checks.Right(field + name)) return;
  }
  if (batch.max() < batch.min()) {
    checks.Add(field + "max", "found " + std::to_string(batch.max()) +
                                  ", allowed is adapt.batch.min, " + std::to_string(batch.min()) +
                                  ", or more");
  } else {
    checks.Whole(field + "per_worker", batch.per_worker(), {batch.min(), batch.max()});
  }
}

void CheckPeriods(const v1::SynchronizationAxis& axis, FieldChecks& checks) {
  const std::string field = "adapt.synchronization.";
  const bool needed = axis.policy() == v1::SYNCHRONIZATION_POLICY_PERIODIC ||
                      axis.policy() == v1::SYNCHRONIZATION_POLICY_POST_LOCAL ||
                      axis.policy() == v1::SYNCHRONIZATION_POLICY_LSGD;
  if (needed && !axis.has_period()) {
    checks.Missing(field + "period",
                   "policy " + WordOf(*v1::SynchronizationPolicy_descriptor(), axis.policy()) +
                       " needs the local steps of a round, 1 to 65536");
  }
  if (axis.has_node_period() && axis.has_period() && checks.Right(field + "node_period") &&
      checks.Right(field + "period") && axis.period() % axis.node_period() != 0) {
    checks.Add(field + "node_period", "found " + std::to_string(axis.node_period()) +
                                          ", allowed is what adapt.synchronization.period, " +
                                          std::to_string(axis.period()) + ", is a multiple of");
  }
  if (axis.has_initial_period() && checks.Right(field + "initial_period") &&
      checks.Right(field + "period_max")) {
    checks.Whole(field + "initial_period", axis.initial_period(), {1, axis.period_max()});
  }
}

// Asked for, it is to have an effect; by default it has one where it can.
void CheckLookAhead(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const std::string field = "adapt.synchronization.look_ahead";
  const bool asked = spec.adapt().synchronization().look_ahead() && !spec.has_program();
  if (!asked || !checks.Right(field) || resolved->optimizer().sgd().momentum() > 0) return;
  checks.Add(field,
             "found true, but what is looked ahead by is the momentum of sgd; give "
             "optimizer.sgd.momentum above 0, or leave it out");
}

// ---- neighbours

// Groups of more members than this are looked at when they are formed: it takes long, and no graph
// allows them more momentum than all smaller groups.
constexpr std::uint32_t kMembersLookedAt = 128;

// A group may come to be of any size in the job's range.
void CheckStability(const ResolvedSpec& spec, const policies::PlannerOptions& adapt,
                    policies::Topology graph, FieldChecks& checks) {
  const std::uint32_t least = std::max(2u, spec->workers().min());
  // Of more than are looked at, at least the smallest group.
  const std::uint32_t most = std::max(least, std::min(spec->workers().max(), kMembersLookedAt));
  double growth = 0;
  std::uint32_t members = least;
  for (std::uint32_t size = least; size <= most; ++size) {
    if (!policies::Takes(graph, size)) continue;
    const double of_size = policies::WorstGrowth(graph, size, adapt.momentum);
    if (of_size <= growth) continue;
    growth = of_size;
    members = size;
  }
  if (growth < 1) return;
  checks.Add("adapt.synchronization.graph",
             "found " + adapt.synchronization.graph + ", with which momentum " +
                 policies::Figure(adapt.momentum) + " multiplies differences between " +
                 std::to_string(members) + " workers by " + policies::Figure(growth) +
                 " a step; allowed are optimizer.sgd.momentum up to " +
                 policies::Figure(policies::LargestMomentum(graph, least, most)) +
                 ", correct_bias: false, or graph ring, exponential or complete");
}

void CheckNeighbours(const ResolvedSpec& spec, const policies::PlannerOptions& adapt,
                     FieldChecks& checks) {
  const v1::SynchronizationAxis& axis = spec->adapt().synchronization();
  if (axis.policy() != v1::SYNCHRONIZATION_POLICY_DECENTLAM) return;
  if (spec->has_program()) {
    checks.Add(
        "adapt.synchronization.policy",
        "found decentlam, which does not go with program: mixing is corrected in the "
        "optimizer's momentum, and a program has one of its own; allowed are other policies");
  }
  if (spec->optimizer().sgd().nesterov()) {
    checks.Add("optimizer.sgd.nesterov",
               "found true, which does not go with adapt.synchronization.policy decentlam: what "
               "corrects its momentum is of momentum as it is; allowed is false");
  }
  if (!checks.Right("adapt.synchronization.graph") || !checks.Right("workers")) return;
  const auto graph = ValueNamed<policies::Topology>(adapt.synchronization.graph);
  if (!graph) return;  // by the group's size
  if (*graph == policies::Topology::kOnePeerHypercube &&
      !policies::Takes(*graph, std::max(1u, spec->workers().max()))) {
    return checks.Add("adapt.synchronization.graph",
                      "found one_peer_hypercube, which is of 2, 4, 8 and so on workers, and "
                      "workers.max is " +
                          std::to_string(spec->workers().max()) + "; allowed are other graphs");
  }
  const bool stable_momentum = checks.Right("optimizer.sgd.momentum") && adapt.momentum < 1;
  if (adapt.synchronization.correct_bias && stable_momentum) {
    CheckStability(spec, adapt, *graph, checks);
  }
}

// ---- learning rate

void CheckStep(const v1::StepSchedule& step, FieldChecks& checks) {
  const std::string field = "adapt.learning_rate.schedule.step.";
  if (step.boundaries().empty()) {
    checks.Missing(field + "boundaries", "give 1 to 64 base steps, rising, such as [3000, 6000]");
  } else if (step.boundaries_size() > kBoundariesMax) {
    checks.Add(field + "boundaries",
               "found " + std::to_string(step.boundaries_size()) + " of them, allowed are 1 to 64");
  } else if (step.boundaries(0) < 1 ||
             std::ranges::adjacent_find(step.boundaries(), std::greater_equal<>()) !=
                 step.boundaries().end()) {
    checks.Add(field + "boundaries", "are not rising base steps of 1 or more");
  }
}

void CheckCosine(const ResolvedSpec& spec, FieldChecks& checks) {
  const std::string field = "adapt.learning_rate.schedule.cosine.";
  const v1::Schedule& schedule = spec->adapt().learning_rate().schedule();
  const v1::CosineSchedule& cosine = schedule.cosine();
  if (!cosine.has_steps()) {
    checks.Missing(field + "steps", "give the base step at which the rate has come down");
  } else if (cosine.steps() <= schedule.warmup_steps()) {
    checks.Add(field + "steps", "found " + std::to_string(cosine.steps()) +
                                    ", allowed is more than schedule.warmup_steps, " +
                                    std::to_string(schedule.warmup_steps()));
  }
  if (!checks.Right("optimizer." + OptimizerName(spec) + ".learning_rate")) return;
  checks.Real(field + "final_rate", cosine.final_rate(),
              {.low = 0,
               .high = engine::BaseLearningRate(EngineOptionsOf(spec).optimizer),
               .text = "0 to the optimizer's learning_rate"});
}

std::optional<std::uint64_t> FallOf(const ResolvedSpec& spec) {
  return policies::StepOfFall(EngineOptionsOf(spec).learning_rate.schedule,
                              policies::PostLocalSynchronization::kFall);
}

void CheckSchedule(const ResolvedSpec& spec, FieldChecks& checks) {
  const v1::Schedule& schedule = spec->adapt().learning_rate().schedule();
  const bool falls = schedule.shape_case() != v1::Schedule::SHAPE_NOT_SET;
  const bool waits =
      spec->adapt().synchronization().policy() == v1::SYNCHRONIZATION_POLICY_POST_LOCAL;
  if (waits && !falls) {
    checks.Missing("adapt.learning_rate.schedule",
                   "policy post_local waits until it lowers the learning rate; give step or "
                   "cosine, or take periodic");
  }
  if (schedule.has_step()) CheckStep(schedule.step(), checks);
  if (schedule.has_cosine()) CheckCosine(spec, checks);
  // Of a schedule that is right otherwise: the same file's other errors are told already.
  if (waits && falls && checks.violations().empty() && !FallOf(spec)) {
    checks.Add("adapt.learning_rate.schedule",
               "never halves the learning rate, for which policy post_local waits; let it fall "
               "further, or take periodic");
  }
}

// ---- encoding

policies::EncodingOptions EncodingOf(const v1::EncodingAxis& axis) {
  policies::EncodingOptions options;
  if (axis.has_bits()) options.bits = axis.bits();
  if (axis.has_bin()) options.bin = axis.bin();
  if (axis.has_convolution_bin()) options.convolution_bin = axis.convolution_bin();
  if (axis.has_share()) options.share = axis.share();
  if (axis.has_candidates()) options.candidates = axis.candidates();
  if (axis.has_rows()) options.rows = axis.rows();
  options.columns = axis.columns();
  return options;
}

// What it sends where it has as few workers as it may, over dense values; of more it may be more,
// and the group is dense then. A sketch of so many columns is for models that are large enough.
void CheckPayload(const ResolvedSpec& spec, policies::Encoding encoding, FieldChecks& checks) {
  const v1::EncodingAxis& axis = spec->adapt().encoding();
  const std::string field = "adapt.encoding.";
  for (const char* name : {"bin", "convolution_bin", "share", "candidates", "rows"}) {
    if (!checks.Right(field + name)) return;
  }
  const std::uint32_t devices = DevicesOfReplica(*spec);
  const std::uint32_t replicas = std::max(2u, spec->workers().min() / devices);
  const double share = policies::ShareOf(encoding, replicas, EncodingOf(axis));
  if (share < 1) return;
  const std::string much = "would send " + policies::Figure(share) + " times as much as dense";
  if (encoding == policies::Encoding::kSketch) {
    checks.Add(field + "share", "found " + policies::Figure(axis.share()) +
                                    ", which with these candidates and rows " + much +
                                    "; give a smaller one");
  } else {
    checks.Add(field + "policy", "found " + std::string(NameOf(encoding)) + ", which among " +
                                     std::to_string(replicas) +
                                     (devices == 1 ? " workers " : " replicas ") + much +
                                     ", as each one's go to all; allowed are fewer workers or "
                                     "longer bins");
  }
}

void CheckEncoding(const ResolvedSpec& spec, FieldChecks& checks) {
  const v1::EncodingAxis& axis = spec->adapt().encoding();
  const std::string field = "adapt.encoding.";
  const std::string name = WordOf(*v1::EncodingPolicy_descriptor(), axis.policy());
  const std::optional<policies::Encoding> encoding = ValueNamed<policies::Encoding>(name);
  if (!encoding || *encoding == policies::Encoding::kDense) return;
  if (axis.has_rows() && axis.rows() % 2 == 0 && checks.Right(field + "rows")) {
    checks.Add(field + "rows", "found " + std::to_string(axis.rows()) +
                                   ", allowed is an odd number: the middle one of them counts");
  }
  CheckPayload(spec, *encoding, checks);
}

// ---- what is not adapted

void CheckFrozen(const v1::Adapt& adapt, FieldChecks& checks) {
  const std::vector<std::string> names(policies::kAxisFields.begin(), policies::kAxisFields.end());
  for (int i = 0; i < adapt.frozen_size(); ++i) {
    const std::string field = "adapt.frozen[" + std::to_string(i) + "]";
    const auto before = adapt.frozen().begin() + i;
    if (std::find(adapt.frozen().begin(), before, adapt.frozen(i)) != before) {
      checks.Add(field, "found " + Shown(adapt.frozen(i)) + " again, allowed is each axis once");
      return;
    }
    const std::size_t wrong = checks.violations().size();
    checks.OneOf(field, adapt.frozen(i), names);
    if (checks.violations().size() > wrong) return;
  }
}

// ---- all together

// A program's optimizer is known when it has loaded, and judged then.
void CheckChoices(const v1::JobSpec& spec, const policies::PlannerOptions& adapt,
                  FieldChecks& checks) {
  for (const policies::Conflict& conflict : policies::ConflictsOf(adapt)) {
    const bool of_optimizer =
        conflict.field.starts_with("optimizer") || conflict.other.starts_with("optimizer");
    if (spec.has_program() && of_optimizer) continue;
    checks.Add(conflict.field, conflict.reason);
  }
}

// What LAMB by signs has of its layers decides, on each member by itself, when signs end; a GPU and
// a processor find it with other last bits.
void CheckSigns(const v1::JobSpec& spec, FieldChecks& checks) {
  const bool mixed = spec.workers().device() == v1::DEVICE_KIND_ANY;
  const bool signs = spec.adapt().encoding().policy() == v1::ENCODING_POLICY_ONE_BIT;
  if (!mixed || !signs || !spec.optimizer().has_lamb()) return;
  checks.Add("workers.device",
             "found any, with optimizer lamb and adapt.encoding.policy one_bit, whose corrections "
             "all members have to find alike; take cuda or cpu");
}

// Steps of a round that the user asked for by number, and so has: a round of `delayed` is cut where
// it must be.
std::uint64_t StepsOfARound(const policies::PlannerOptions& adapt) {
  return adapt.synchronization.policy == "delayed" ? 1 : std::max(1u, adapt.synchronization.period);
}

void CheckRound(const v1::JobSpec& spec, const policies::PlannerOptions& adapt,
                FieldChecks& checks) {
  const std::uint64_t steps = StepsOfARound(adapt);
  if (adapt.batch.per_worker > kBatchMax || steps > policies::kPeriodMax) return;
  const std::uint32_t most = WorkersOfARound(adapt);
  if (spec.workers().min() <= most) return;
  const std::string limit = ": a round has at most 16777216 samples";
  if (most == 0) {
    const bool given = spec.adapt().synchronization().has_period();
    checks.Add(given ? "adapt.synchronization.period" : "adapt.synchronization.initial_period",
               "found " + std::to_string(steps) +
                   ", which is too much with this adapt.batch.per_worker" + limit);
    return;
  }
  const std::string period = steps > 1 ? " and this period" : "";
  checks.Add("workers.min", "found " + std::to_string(spec.workers().min()) +
                                ", allowed with this adapt.batch.per_worker" + period +
                                " is at most " + std::to_string(most) + limit);
}

// The name of the axis's policy; empty for one that is unknown.
std::string PolicyOf(const v1::Adapt& adapt, policies::Axis axis) {
  const auto* const section =
      v1::Adapt::descriptor()->FindFieldByName(std::string(policies::FieldOf(axis)));
  const google::protobuf::Message& message = adapt.GetReflection()->GetMessage(adapt, section);
  const auto* const policy = section->message_type()->FindFieldByName("policy");
  return WordOf(*policy->enum_type(), message.GetReflection()->GetEnumValue(message, policy));
}

// What the policy does not have stays as it is.
policies::SynchronizationOptions SynchronizationOf(const v1::SynchronizationAxis& axis) {
  policies::SynchronizationOptions options;
  options.period = axis.has_initial_period() ? axis.initial_period() : axis.period();
  if (axis.has_period_max()) options.period_max = axis.period_max();
  if (axis.has_interval()) {
    options.interval_seconds = static_cast<double>(axis.interval().seconds()) +
                               1e-9 * static_cast<double>(axis.interval().nanos());
  }
  if (axis.has_loss_floor()) options.loss_floor = axis.loss_floor();
  if (axis.has_steps_max()) options.steps_max = axis.steps_max();
  options.look_ahead = axis.look_ahead();
  if (axis.graph() != v1::NEIGHBOUR_GRAPH_UNSPECIFIED) {
    options.graph = WordOf(*v1::NeighbourGraph_descriptor(), axis.graph());
  }
  options.correct_bias = !axis.has_correct_bias() || axis.correct_bias();
  options.log_time = axis.fallback() == v1::ADACOMM_FALLBACK_LOG_TIME;
  return options;
}

// Of what is chosen from the noise of gradients, by trials, or by letting devices go on by
// themselves, nothing was tried with devices that have parts: they take what the speeds alone say.
void FixForMesh(policies::Axis axis, policies::PlannerOptions& options) {
  std::string& policy = policies::PolicyOf(options, axis);
  if (policy != "auto") return;
  switch (axis) {
    case policies::Axis::kBatch:
      policy = "proportional";
      break;
    case policies::Axis::kSynchronization:
      policy = "every_step";
      break;
    case policies::Axis::kAggregation:
      policy = "average";
      break;
    case policies::Axis::kLearningRate:
      policy = "constant";
      break;
    case policies::Axis::kEncoding:
      policy = "dense";
      break;
  }
}

}  // namespace

void CheckAdapt(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks) {
  const policies::PlannerOptions adapt = PlannerOptionsOf(resolved);
  CheckBatch(resolved->adapt().batch(), checks);
  CheckPeriods(resolved->adapt().synchronization(), checks);
  CheckLookAhead(spec, resolved, checks);
  CheckNeighbours(resolved, adapt, checks);
  CheckSchedule(resolved, checks);
  CheckEncoding(resolved, checks);
  CheckFrozen(spec.adapt(), checks);
  CheckChoices(spec, adapt, checks);
  CheckSigns(spec, checks);
  CheckRound(*resolved, adapt, checks);
}

std::string OptimizerName(const ResolvedSpec& spec) {
  const v1::Optimizer& optimizer = spec->optimizer();
  return optimizer.GetReflection()
      ->GetOneofFieldDescriptor(optimizer, v1::Optimizer::descriptor()->FindOneofByName("rule"))
      ->name();
}

policies::PlannerOptions PlannerOptionsOf(const ResolvedSpec& spec) {
  const v1::Adapt& adapt = spec->adapt();
  policies::PlannerOptions options;
  options.batch = {.per_worker = adapt.batch().per_worker(),
                   .batch_min = adapt.batch().min(),
                   .batch_max = adapt.batch().max()};
  options.synchronization = SynchronizationOf(adapt.synchronization());
  if (adapt.synchronization().policy() == v1::SYNCHRONIZATION_POLICY_POST_LOCAL) {
    options.synchronization.rate_falls_at = FallOf(spec);
  }
  options.base_batch = adapt.learning_rate().base_batch();
  options.optimizer = OptimizerName(spec);
  options.momentum = spec->optimizer().sgd().momentum();
  if (spec->optimizer().has_clip_norm()) options.clip_norm = spec->optimizer().clip_norm();
  const std::string shard = WordOf(*v1::Shard_descriptor(), spec->optimizer().shard());
  if (!shard.empty()) options.shard = shard;
  options.encoding = EncodingOf(adapt.encoding());
  const std::uint32_t devices = DevicesOfReplica(*spec);
  options.batch.replica_members = devices;
  if (devices > 1) {
    options.mesh = WordOf(*v1::MeshKind_descriptor(), spec->model().options().mesh().kind());
  }
  for (const policies::Axis axis : policies::kAxes) {
    policies::PolicyOf(options, axis) = PolicyOf(adapt, axis);
    if (devices > 1) FixForMesh(axis, options);
    const auto frozen = std::ranges::find(adapt.frozen(), policies::FieldOf(axis));
    if (frozen != adapt.frozen().end()) options.frozen.push_back(axis);
  }
  return options;
}

std::uint32_t WorkersOfARound(const policies::PlannerOptions& adapt) {
  const std::uint64_t samples = std::max(1u, adapt.batch.per_worker) * StepsOfARound(adapt);
  return static_cast<std::uint32_t>(policies::kRoundSamplesMax / samples);
}

}  // namespace tactus::spec
