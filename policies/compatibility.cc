#include "policies/compatibility.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "policies/optimizers.h"
#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

// ---- The matrix

struct Entry {
  Relation relation = Relation::kFree;
  int number = 0;
};
constexpr Entry kFree{};
constexpr Entry C(int number) { return {Relation::kConditional, number}; }
constexpr Entry N(int number) { return {Relation::kForbidden, number}; }

constexpr int kPairs = kMethods * (kMethods - 1) / 2;

// Below the diagonal, row by row: each pair stands here once, so the matrix is symmetric.
// clang-format off
constexpr std::array<Entry, kPairs> kMatrix = {
    /* DQ-SGD */     N(1),
    /* AdaComp */    N(1), N(1),
    /* LSGD */       N(2), N(10), N(2),
    /* DecentLaM */  N(3), N(11), N(3), N(17),
    /* HFTA */       C(4), C(4), C(4), C(18), C(25),
    /* 1-bit LAMB */ N(5), N(5), N(5), N(19), N(19), C(29),
    /* CRAIG */      kFree, kFree, kFree, C(20), C(26), C(30), C(34),
    /* Adasum */     N(6), C(12), N(16), N(21), N(21), C(31), N(35), kFree,
    /* AdaScale */   C(7), C(13), C(7), N(22), N(22), C(31), N(36), C(39), N(42),
    /* AdaComm */    C(8), C(14), C(8), C(23), N(27), C(32), N(37), C(40), C(43), N(45),
    /* ABS-SGD */    C(9), C(15), C(9), N(24), N(28), C(33), N(38), C(41), C(44), C(46), N(47),
};
// clang-format on

// By number, from 1.
constexpr std::array<std::string_view, kReasons> kReasonTexts = {
    "there is one encoder and one owner of its residual: two error-feedback stores on the same "
    "signal count an error twice or hide it from each other",
    "LSGD sends the parameters of one worker: nothing is summed, parameters are not sparse, and "
    "as the sender changes neither a sketch nor a residual has an owner",
    "dropped coordinates stay without consensus, and the recursion takes what is missing for a "
    "gradient of size 1 / learning rate",
    "one encoder for each job's slice, with its own seed, bins, scale and residual: bins and "
    "buckets must not straddle slices",
    "1-bit LAMB owns the encoding of the momentum and needs all coordinates of each step; before "
    "its switch, quantisation would bias its second moment",
    "Adasum is not linear and needs dot products of dense vectors; a sketch knows sums only",
    "the norms of the workers are those of the raw gradients; as the combined gradient cannot be "
    "seen in the encoded one, a dense probe every 50 steps or more gives its norm and the gain is "
    "held in between",
    "the encoder takes the round's change of the parameters, without momentum of its own; the "
    "residual is in units of parameters and is not rescaled with the learning rate",
    "inputs are weighted by samples before error feedback, so the exchange of the counts opens "
    "the round; what was sent is subtracted from the residual, which the next batch adds to "
    "meanwhile",
    "the quantisation noise of a single leader is not averaged over the workers, and a difference "
    "needs a common reference that a change of leader invalidates",
    "a quantisation error enters the direction divided by the learning rate and is amplified by 1 "
    "/ (1 - momentum)",
    "the exchanged vectors are decoded before Adasum; the variance of the sender's quantisation "
    "is sent along and subtracted from the norms; a sum of integers is impossible",
    "the norms of the workers are those of the raw gradients, and the mean quantisation variance "
    "is subtracted from the norm of the combined one, or the gain is biased",
    "the changes of the parameters are quantised; bits and counts go by rounds, not by steps",
    "gradients are weighted by samples before they are quantised, and the exchange of scale and "
    "counts belongs to the round in the background",
    "the ternary supports of two workers are almost disjoint, so dot products vanish and Adasum "
    "becomes a plain sum: a learning rate multiplied by the number of workers",
    "two contraction maps on the same parameters, towards one worker and towards the neighbours, "
    "break the assumptions of both",
    "one leader for each job of the array",
    "1-bit LAMB needs parameters and moments that are equal on all workers; LSGD and DecentLaM "
    "keep them different by design",
    "a leader's score is the unweighted loss on a common probe, or one over global subsets",
    "both say how what the workers learned becomes one",
    "there is no averaged gradient at common parameters, so the gain is undefined",
    "AdaComm's rule on the loss sets the period of LSGD; its averaging is replaced by the pull, "
    "and the coupling to the learning rate stays",
    "LSGD absorbs slow workers already by counting steps, and has no sum of gradients to delay",
    "the learning rate and the momentum are those of each slice, with one gate for each pair of "
    "them",
    "one global subset, shuffled over the nodes: subsets by node raise the differences that bias "
    "the consensus",
    "the correction aggregates the local steps and momentum replays it, which the stability gate "
    "does not cover",
    "the consensus correction would act one round late, with an effective gain of about 1",
    "norms, moments and scales are those of each slice; the step at which the variance is frozen "
    "is common",
    "all jobs take subsets of equal size and batches of equal shape",
    "dot products, norms and gains are those of each slice, and the learning rate is a vector; "
    "jobs that advance at different rates count their own progress",
    "one period for the array, the largest or the median of the jobs'",
    "the elastic batch is that of the whole array, with counts common to all slices",
    "a new selection changes the gradients under a frozen variance: some dense steps follow each, "
    "and no two come within a few hundred steps",
    "the average sits inside the exchange of 1-bit LAMB, whose sign-coded vectors all have the "
    "same norm; a switch after the warm-up changes the meaning of its scale",
    "the trust ratio normalises the length of a step already, AdaScale is derived for SGD, and "
    "the averaged gradient is not available after the switch",
    "local steps make parameters and moments differ across workers while the variance is frozen",
    "elastic batches change the scale of the gradient under a frozen variance, and a delayed "
    "round overlaps the change of the residual with the next momentum",
    "weighted gradients have a larger variance: the averages start anew at each selection",
    "the loss is an unweighted estimate, and a selection that resets it must not raise the period",
    "samples are handed out from a global order of the subset, each once an epoch",
    "both take the place of the rule that scales the learning rate: Adasum is made to keep that "
    "of one worker, and what it combines is not the mean that AdaScale's gain assumes",
    "Adasum combines the changes of the parameters at the ends of rounds",
    "each worker's sum is divided by its own count first, as Adasum does not weigh by samples; "
    "the delay of one round is unchanged",
    "the gain needs the gradients of each step at common parameters, and local steps do not "
    "provide them",
    "the scale is the round's samples over the base batch, the estimate of the variance is "
    "weighted by samples, and the gain is applied one round late with a bounded change",
    "both say when workers combine what they learned: after several local steps, or one round "
    "late",
};

// ---- The rules between choices

enum Field { kBatch, kSynchronization, kAggregation, kLearningRate, kOptimizer, kBlockMomentum };

constexpr std::array<std::string_view, 6> kFields = {"adapt.batch.policy",
                                                     "adapt.synchronization.policy",
                                                     "adapt.aggregation.policy",
                                                     "adapt.learning_rate.policy",
                                                     "optimizer",
                                                     "adapt.synchronization.block_momentum"};

using Names = std::vector<std::string_view>;

constexpr std::string_view kAboveZero = "above 0";

// None of `values` goes with any of `others`.
struct Rule {
  Field field = kBatch;
  Names values{};
  Field other = kBatch;
  Names others{};
  std::string reason{};
};

std::string Because(Method a, Method b) { return std::string(Relate(a, b).reason); }

const std::vector<Rule>& Rules() {
  static const std::vector<Rule> rules = {
      {kLearningRate,
       {"adascale"},
       kAggregation,
       {"adasum"},
       Because(Method::kAdaScale, Method::kAdasum) +
           "; take constant with adasum, or average with adascale"},
      {kLearningRate,
       {"adascale"},
       kSynchronization,
       {"periodic", "adacomm"},
       Because(Method::kAdaScale, Method::kAdaComm) + "; take every_step or delayed with adascale"},
      {kBatch,
       {"abs"},
       kSynchronization,
       {"every_step", "periodic", "adacomm"},
       "an elastic batch grows while the gradients of the round before travel, which they do with "
       "delayed alone; take delayed or auto"},
      {kLearningRate,
       {"adascale"},
       kOptimizer,
       PreconditionedOptimizers(),
       "the gain is derived for sgd; with preconditioned steps it is another method; take sqrt or "
       "constant, or optimizer sgd"},
      {kSynchronization,
       {"adacomm"},
       kOptimizer,
       PreconditionedOptimizers(),
       "the rule for the period is derived for sgd; take periodic, or optimizer sgd"},
      {kBlockMomentum,
       {kAboveZero},
       kOptimizer,
       PreconditionedOptimizers(),
       "block momentum divides the round's change of the parameters by sgd's learning rate; leave "
       "it out, or take optimizer sgd"},
  };
  return rules;
}

std::string_view ValueOf(const Choices& choices, Field field) {
  switch (field) {
    case kBatch:
      return choices.batch;
    case kSynchronization:
      return choices.synchronization;
    case kAggregation:
      return choices.aggregation;
    case kLearningRate:
      return choices.learning_rate;
    case kOptimizer:
      return choices.optimizer;
    case kBlockMomentum:
      return choices.block_momentum ? kAboveZero : std::string_view("0");
  }
  return {};
}

// What a choice can turn out to be.
Names ValuesOf(const Choices& choices, Field field) {
  const std::string_view value = ValueOf(choices, field);
  if (value != "auto") return {value};
  switch (field) {
    case kBatch:
      return {"fixed", "proportional", "abs"};
    case kSynchronization:
      return {"every_step", "periodic", "adacomm", "delayed"};
    case kAggregation:
      return {"average", "adasum"};
    case kLearningRate:
      return {"constant", "linear", "sqrt", "adascale"};
    default:
      return {value};
  }
}

// Whichever value the field turns out to have, it is among `names`.
bool AllAmong(const Choices& choices, Field field, const Names& names) {
  return std::ranges::all_of(ValuesOf(choices, field), [&](std::string_view value) {
    return std::ranges::find(names, value) != names.end();
  });
}

bool Breaks(const Choices& choices, const Rule& rule) {
  return AllAmong(choices, rule.field, rule.values) && AllAmong(choices, rule.other, rule.others);
}

}  // namespace

Verdict Relate(Method a, Method b) {
  if (a == b) return {};
  const auto column = static_cast<std::size_t>(std::min(a, b));
  const auto row = static_cast<std::size_t>(std::max(a, b));
  const Entry entry = kMatrix[row * (row - 1) / 2 + column];
  if (entry.number == 0) return {};
  return {.relation = entry.relation, .number = entry.number, .reason = ReasonOf(entry.number)};
}

std::string_view ReasonOf(int number) {
  TACTUS_CHECK(number >= 1 && number <= kReasons);
  return kReasonTexts[static_cast<std::size_t>(number - 1)];
}

std::vector<Conflict> ConflictsOf(const Choices& choices) {
  std::vector<Conflict> conflicts;
  for (const Rule& rule : Rules()) {
    if (!Breaks(choices, rule)) continue;
    const std::string value(ValueOf(choices, rule.field));
    const std::string other(ValueOf(choices, rule.other));
    conflicts.push_back({.field = std::string(kFields[rule.field]),
                         .other = std::string(kFields[rule.other]),
                         .reason = "found " + value + ", which does not go with " +
                                   std::string(kFields[rule.other]) + " " + other + ": " +
                                   rule.reason});
  }
  return conflicts;
}

bool Allowed(const Plan& plan, std::string_view optimizer) {
  const Choices choices = {.batch = "fixed",
                           .synchronization = std::string(NameOf(plan.synchronization)),
                           .aggregation = std::string(NameOf(plan.aggregation)),
                           .learning_rate = std::string(NameOf(plan.learning_rate_rule)),
                           .optimizer = std::string(optimizer)};
  return std::ranges::none_of(Rules(), [&](const Rule& rule) { return Breaks(choices, rule); });
}

}  // namespace tactus::policies
