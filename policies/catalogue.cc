#include "policies/catalogue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "policies/adacomm_synchronization.h"
#include "policies/auto_aggregation.h"
#include "policies/auto_encoding.h"
#include "policies/auto_learning_rate.h"
#include "policies/auto_synchronization.h"
#include "policies/batch_axis.h"
#include "policies/fixed_policies.h"
#include "policies/goodput_batch.h"
#include "policies/micro_batch.h"
#include "policies/neighbour_synchronization.h"
#include "policies/post_local_synchronization.h"

namespace tactus::policies {
namespace {

using Made = std::unique_ptr<AxisPolicy>;
using Options = PlannerOptions;

constexpr std::string_view kForSgd =
    "the gain is derived for sgd; with preconditioned steps it is "
    "another method; take sqrt or constant, or optimizer sgd";

// Of what is made for the terms of a sum.
constexpr Exclusion kForSums = {
    .trait = Trait::kWholeVectors,
    .reason =
        "adasum goes by products of whole vectors, which travel dense; take average, or dense"};

constexpr std::string_view kStepsOfAll =
    "the signs that travel are of one momentum, that of every step of all members; take "
    "every_step, "
    "or another encoding";

// Of steps for which a member needs all of the optimizer's state.
constexpr Exclusion kForWholeState = {
    .trait = Trait::kSharded,
    .reason =
        "each member steps by itself, for which it needs all of the optimizer's state; take "
        "every_step, or shard: none"};

// Of members that go on by themselves: those of one replica make one step together.
constexpr Exclusion kForWholeModel = {
    .trait = Trait::kInParts,
    .reason =
        "a replica's devices pass over their samples together, and no device could go on by "
        "itself; take every_step, periodic, post_local or adacomm, or mesh: none"};

// Of signs, whose scales are one number for all of a layer's momentum.
constexpr Exclusion kForWholeMomentum = {
    .trait = Trait::kInParts,
    .reason =
        "its scales and the end of its warm-up are of whole layers' moments, of which each device "
        "of a mesh has a part; take dq, adacomp or sketch, or mesh: none"};

// Of what deviates from the sum by more than a rounding.
constexpr Exclusion kForOwnNoise = {
    .trait = Trait::kMeasuredNoise,
    .reason =
        "the gain follows the noise of gradients, and what their sum tells of it is hidden behind "
        "what the encoding adds or leaves out; take constant, linear or sqrt, or float16"};

// Of synchronizations under which each member has parameters of its own: no sum of gradients is
// made of what they learn.
std::vector<Exclusion> ForOwnParameters() {
  return {
      {.trait = Trait::kWholeVectors,
       .reason = "both say how what members learned becomes one, and no gradients are combined "
                 "where members keep parameters of their own; take average, or another "
                 "synchronization"},
      {.trait = Trait::kMeasuredNoise,
       .reason = "the gain is of a mean of gradients at parameters that all have, and members have "
                 "parameters of their own; take constant, linear or sqrt, or another "
                 "synchronization"},
      {.trait = Trait::kEncoded,
       .reason = "what travels is one member's parameters, which are no sum in which errors "
                 "average out, nor one sender's whose errors could be made up for; take dense, or "
                 "another synchronization"},
      kForWholeState,
      kForWholeModel};
}

std::vector<Exclusion> ForNeighbours() {
  std::vector<Exclusion> exclusions = ForOwnParameters();
  const Exclusion of_sgd{
      .trait = Trait::kPreconditioned,
      .reason =
          "mixing is corrected in the momentum of a gradient, and its stability is known of "
          "sgd alone; take optimizer sgd, or another synchronization"};
  exclusions.push_back(of_sgd);
  return exclusions;
}

// Makes what stays as it is.
template <typename Fixed, auto value>
Made Fix(const Options&) {
  return std::make_unique<Fixed>(value);
}
template <Encoding encoding>
Made FixEncoding(const Options& job) {
  return std::make_unique<FixedEncoding>(encoding, job.encoding, job.batch.replica_members);
}

const std::vector<Policy>& BatchPolicies() {
  static const std::vector<Policy> policies = {
      {.name = "fixed",
       .sentence = "every worker takes {per_worker} samples a step",
       .make = [](const Options& job) -> Made { return std::make_unique<FixedBatch>(job.batch); }},
      {.name = "proportional",
       .sentence = "shares follow the measured speeds, {per_worker} samples a worker and step on "
                   "average",
       .make = [](const Options& job) -> Made { return std::make_unique<BatchAxis>(job.batch); }},
      {.name = "abs",
       .sentence = "every worker goes on, {per_worker} samples at a time, for as long as gradients "
                   "travel",
       .make = [](const Options& job) -> Made {
         return std::make_unique<MicroBatch>(job.batch, std::make_unique<BatchAxis>(job.batch));
       },
       .traits = {Trait::kLateGradients},  // of delayed, without which it has no effect
       .excludes =
           {{.trait = Trait::kSharded,
             .reason = "the batch grows while gradients travel, which they do not where members "
                       "hold parts of the optimizer's state; take fixed or proportional, or shard: "
                       "none"},
            {.trait = Trait::kInParts,
             .reason =
                 "how many batches each device takes would be its own, and a mesh passes over "
                 "all together; take fixed or proportional, or mesh: none"},
            {.trait = Trait::kIdleTransfer,
             .reason =
                 "an elastic batch grows while the gradients of the round before travel, which "
                 "they do with delayed alone; take delayed or auto"}}},
      {.name = "auto",
       .sentence = "the sum follows the gradients' noise and the throughput, beginning with "
                   "{per_worker} samples a worker, and the shares follow the speeds",
       .make = [](const Options& job) -> Made {
         return std::make_unique<MicroBatch>(
             job.batch, std::make_unique<GoodputBatch>(job.batch, job.base_batch));
       }}};
  return policies;
}

// Of members that have parameters of their own.
std::vector<Policy> PoliciesOfOwnParameters() {
  return {
      {.name = "lsgd",
       .sentence =
           "every worker trains by itself and is pulled every {period} steps, counted over "
           "all, towards the one of the least loss; evaluations, checkpoints and the result "
           "are of the mean of all workers' parameters",
       .make = [](const Options& job) -> Made {
         return std::make_unique<FixedSynchronization>(Synchronization::kLsgd,
                                                       job.synchronization.period);
       },
       .traits = {Trait::kIdleTransfer, Trait::kLocalSteps, Trait::kOwnParameters},
       .excludes = ForOwnParameters()},
      {.name = "decentlam",
       .sentence =
           "every worker mixes its parameters with its neighbours' in every step, by a graph of "
           "all workers, and corrects its momentum for that; evaluations, checkpoints and the "
           "result are of the mean of all workers' parameters",
       .make = [](const Options& job) -> Made {
         return std::make_unique<NeighbourSynchronization>(job);
       },
       .traits = {Trait::kIdleTransfer, Trait::kOwnParameters},
       .excludes = ForNeighbours()}};
}

std::vector<Policy> AllSynchronizations() {
  std::vector<Policy> policies = {
      {.name = "every_step",
       .sentence = "gradients are combined in every step",
       .make = [](const Options&) -> Made {
         return std::make_unique<FixedSynchronization>(Synchronization::kEveryStep, 1);
       },
       .traits = {Trait::kIdleTransfer, Trait::kSingleSteps}},
      {.name = "periodic",
       .sentence = "what changed is combined every {period} steps",
       .make = [](const Options& job) -> Made {
         return std::make_unique<FixedSynchronization>(Synchronization::kPeriodic,
                                                       job.synchronization.period);
       },
       .traits = {Trait::kIdleTransfer, Trait::kLocalSteps},
       .excludes = {kForWholeState}},
      {.name = "post_local",
       .sentence =
           "gradients are combined in every step until the schedule has halved the learning "
           "rate, then what changed every {period} steps",
       .make = [](const Options& job) -> Made {
         return std::make_unique<PostLocalSynchronization>(job.synchronization);
       },
       .traits = {Trait::kIdleTransfer, Trait::kLocalSteps, Trait::kSingleSteps},
       .excludes = {kForWholeState}},
      {.name = "adacomm",
       .sentence = "what changed is combined every so many steps, fewer as the loss falls",
       .make = [](const Options& job) -> Made {
         return std::make_unique<AdacommSynchronization>(job.synchronization);
       },
       .traits = {Trait::kIdleTransfer, Trait::kLocalSteps, Trait::kSingleSteps},
       .excludes = {{.trait = Trait::kPreconditioned,
                     .reason =
                         "the rule for the period is derived for sgd; take periodic, or optimizer "
                         "sgd"},
                    kForWholeState}},
      {.name = "delayed",
       .sentence = "gradients travel while the next round computes, and are applied one round late",
       .make = [](const Options& job) -> Made {
         return std::make_unique<FixedSynchronization>(Synchronization::kDelayed,
                                                       job.synchronization.steps_max);
       },
       .traits = {Trait::kLateGradients},
       .excludes = {{.trait = Trait::kSharded,
                     .reason = "members tell one another of their parts before the next round "
                               "computes, so that nothing travels meanwhile; take every_step, or "
                               "shard: none"},
                    kForWholeModel}},
  };
  std::ranges::move(PoliciesOfOwnParameters(), std::back_inserter(policies));
  const Policy last{.name = "auto",
                    .sentence = "chosen from the measured times and the loss",
                    .make = [](const Options& job) -> Made {
                      return std::make_unique<AutoSynchronization>(job);
                    }};
  policies.push_back(last);
  return policies;
}

const std::vector<Policy>& SynchronizationPolicies() {
  static const std::vector<Policy> policies = AllSynchronizations();
  return policies;
}

const std::vector<Policy>& AggregationPolicies() {
  static const std::vector<Policy> policies = {
      {.name = "average",
       .sentence = "the mean over all samples",
       .make = Fix<FixedAggregation, Aggregation::kAverage>},
      {.name = "adasum",
       .sentence = "by pairs, as the angle between gradients says",
       .make = Fix<FixedAggregation, Aggregation::kAdasum>,
       .traits = {Trait::kOwnStepLength, Trait::kWholeVectors},
       .excludes =
           {{.trait = Trait::kLateGradients,
             .of_memory = true,
             .reason = "adasum is of the steps that optimizers take, and what is combined late is "
                       "gradients, which are not alike where an optimizer remembers former ones; "
                       "take average, another synchronization, or sgd without momentum"},
            {.trait = Trait::kSingleSteps,
             .of_memory = true,
             .of_parts = true,
             .reason = "adasum is of the steps that optimizers take, and where a group is lost "
                       "within a single one, a mesh's devices could not tell who has taken it; "
                       "take periodic, or average, or sgd without momentum, or mesh: none"},
            {.trait = Trait::kSharded,
             .of_memory = true,
             .reason =
                 "adasum is of the steps that optimizers take, for which each member needs all "
                 "of the optimizer's state; take average, or shard: none"}}},
      {.name = "auto",
       .sentence = "chosen from the measured orthogonality of the gradients",
       .make = [](const Options& job) -> Made {
         return std::make_unique<AutoAggregation>(job.base_batch,
                                                  job.learning_rate_policy == "auto");
       }}};
  return policies;
}

const std::vector<Policy>& LearningRatePolicies() {
  static const std::vector<Policy> policies = {
      {.name = "constant",
       .sentence = "as the optimizer has it, whatever the batch",
       .make = Fix<FixedLearningRate, LearningRateRule::kConstant>},
      {.name = "linear",
       .sentence = "in proportion to the batch, from {base_batch} samples on",
       .make = Fix<FixedLearningRate, LearningRateRule::kLinear>},
      {.name = "sqrt",
       .sentence = "with the square root of the batch, from {base_batch} samples on",
       .make = Fix<FixedLearningRate, LearningRateRule::kSqrt>},
      {.name = "adascale",
       .sentence = "multiplied by the gain that the gradients' noise allows over {base_batch} "
                   "samples",
       .make = Fix<FixedLearningRate, LearningRateRule::kAdascale>,
       .traits = {Trait::kMeasuredNoise},
       .excludes =
           {{.trait = Trait::kOwnStepLength,
             .reason = "both take the place of the rule that scales the learning rate: Adasum is "
                       "made to keep that of one worker, and what it combines is not the mean that "
                       "AdaScale's gain assumes; take constant with adasum, or average with "
                       "adascale"},
            {.trait = Trait::kPreconditioned, .reason = kForSgd}}},
      {.name = "auto",
       .sentence = "chosen to fit the optimizer, the batch and the loss",
       .make = [](const Options& job) -> Made {
         return std::make_unique<AutoLearningRate>(job.optimizer, job.base_batch);
       }}};
  return policies;
}

const std::vector<Policy>& EncodingPolicies() {
  static const std::vector<Policy> policies = {
      {.name = "dense",
       .sentence = "vectors travel as float32",
       .make = FixEncoding<Encoding::kDense>},
      {.name = "float16",
       .sentence = "vectors travel in half the bytes, rounded to 11 bits",
       .make = FixEncoding<Encoding::kFloat16>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums}},
      {.name = "bfloat16",
       .sentence = "vectors travel in half the bytes, rounded to 8 bits",
       .make = FixEncoding<Encoding::kBfloat16>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums}},
      {.name = "dq",
       .sentence =
           "vectors travel in few bits a value, rounded at random so that they are right on "
           "average, and finer as training goes on",
       .make = FixEncoding<Encoding::kDq>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums, kForOwnNoise}},
      {.name = "sketch",
       .sentence = "the largest values of the sum travel, found by a sketch of it; the rest is "
                   "added to what comes next",
       .make = FixEncoding<Encoding::kSketch>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums, kForOwnNoise}},
      {.name = "adacomp",
       .sentence = "what stands out of each stretch of a layer travels; the rest is added to what "
                   "comes next",
       .make = FixEncoding<Encoding::kAdacomp>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums, kForOwnNoise}},
      {.name = "one_bit",
       .sentence = "signs of the momentum travel, after a time of dense values; what they miss is "
                   "added to what comes next",
       .make = FixEncoding<Encoding::kOneBit>,
       .traits = {Trait::kEncoded},
       .excludes = {kForSums,
                    kForOwnNoise,
                    kForWholeMomentum,
                    {.trait = Trait::kLocalSteps, .reason = kStepsOfAll},
                    {.trait = Trait::kLateGradients, .reason = kStepsOfAll},
                    {.trait = Trait::kSharded,
                     .reason = "what travels are signs of the whole momentum, of which each member "
                               "has a part; take another encoding, or shard: none"},
                    {.trait = Trait::kFirstMoments,
                     .reason = "what travels is the momentum of steps that are divided by the root "
                               "of a second moment; take adam, adamw or lamb, or another encoding"},
                    {.trait = Trait::kClipped,
                     .reason = "gradients do not travel, so that their norm is not known; leave it "
                               "out, or take another encoding"}}},
      {.name = "auto",
       .sentence = "float16 where a transfer takes so long that fewer bytes are found to pay, and "
                   "dq, or of every step adacomp, where the loss is found to fall faster with it",
       .make = [](const Options& job) -> Made {
         return std::make_unique<AutoEncoding>(
             AutoEncoding::Options{.base_batch = static_cast<double>(job.base_batch),
                                   .loss_floor = job.synchronization.loss_floor,
                                   .residuals = job.synchronization.policy == "every_step"});
       }}};
  return policies;
}

// Puts a number in the place of its name in braces.
void Fill(std::string& sentence, std::string_view name, std::uint32_t number) {
  const std::string place = "{" + std::string(name) + "}";
  const std::size_t at = sentence.find(place);
  if (at != std::string::npos) sentence.replace(at, place.size(), std::to_string(number));
}

}  // namespace

const std::vector<Policy>& PoliciesOf(Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return BatchPolicies();
    case Axis::kSynchronization:
      return SynchronizationPolicies();
    case Axis::kAggregation:
      return AggregationPolicies();
    case Axis::kLearningRate:
      return LearningRatePolicies();
    case Axis::kEncoding:
      break;
  }
  return EncodingPolicies();
}

const Policy* FindPolicy(Axis axis, std::string_view name) {
  const std::vector<Policy>& policies = PoliciesOf(axis);
  const auto found = std::ranges::find(policies, name, &Policy::name);
  return found == policies.end() ? nullptr : &*found;
}

bool HasTrait(Axis axis, std::string_view name, Trait trait) {
  const Policy* const policy = FindPolicy(axis, name);
  return policy != nullptr && std::ranges::find(policy->traits, trait) != policy->traits.end();
}

std::string SentenceOf(const PlannerOptions& options, Axis axis) {
  const Policy* const policy = FindPolicy(axis, PolicyOf(options, axis));
  if (policy == nullptr) return {};
  std::string sentence(policy->sentence);
  Fill(sentence, "per_worker", options.batch.per_worker);
  Fill(sentence, "period", options.synchronization.period);
  Fill(sentence, "base_batch", options.base_batch);
  return sentence;
}

std::vector<UnknownPolicy> UnknownPolicies(const PlannerOptions& options) {
  std::vector<UnknownPolicy> unknown;
  for (const Axis axis : kAxes) {
    const std::string& name = PolicyOf(options, axis);
    if (FindPolicy(axis, name) == nullptr) unknown.push_back({.axis = axis, .name = name});
  }
  return unknown;
}

}  // namespace tactus::policies
