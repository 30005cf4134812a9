// Validation while a job trains: when it is due, and what its losses have come to.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace tactus::engine {

enum class ValidationPolicy { kAuto, kNone };

constexpr std::string_view NameOf(ValidationPolicy policy) {
  return policy == ValidationPolicy::kAuto ? "auto" : "none";
}

// A job file's `validation`, and what there is to evaluate.
struct ValidationOptions {
  ValidationPolicy policy = ValidationPolicy::kNone;
  // Of these one at most is set. None: as often as costs a share of Validations::kShare.
  std::optional<Duration> every{};        // of training, from one's end on
  std::optional<std::uint32_t> epochs{};  // after each so many, >= 1
  std::optional<std::uint64_t> rounds{};  // likewise
  std::uint64_t samples = 0;              // that one evaluates; 0: there are none, and none is made
};

// What all members found together, the same bits on each.
struct Validation {
  double loss = 0;       // mean over samples; need not be finite
  double accuracy = -1;  // share of right answers; -1: the loss has no notion of it
  std::uint64_t samples = 0;  // 0: nothing was evaluated here
  Instant end{};  // on this member's clock
};

// Where training stands at an edge. All but the time is equal on all members.
struct ValidationMark {
  std::uint64_t rounds = 0;   // applied
  std::uint64_t epochs = 0;   // completed
  std::uint64_t samples = 0;  // trained on by all members
  Duration trained{};

  friend bool operator==(const ValidationMark&, const ValidationMark&) = default;
};

// What is carried over from one group to the next. Plain data.
struct ValidationState {
  std::uint64_t count = 0;    // made so far
  ValidationMark last{};      // of the last one; `trained` is at its end
  Duration cost{};            // of the last one: training stood still
  Duration total_cost{};      // of all
  std::uint64_t samples = 0;  // that the last one evaluated
  double loss = 0;            // of the last one
  double best_loss = 0;       // of the best one, as are the next three
  double best_accuracy = -1;
  std::uint64_t best_samples = 0;  // 0: there is no best one yet
  std::uint64_t best_rounds = 0;   // applied before it
  std::uint32_t since_best = 0;    // made in a row since then

  friend bool operator==(const ValidationState&, const ValidationState&) = default;
};

// There is no best one any more, as nobody has its parameters or their loss is of other samples:
// those to come are compared among themselves.
void ForgetBest(ValidationState& state);

// One member's count of them. Members agree on what follows from rounds, epochs and losses, which
// are the same for all; where time says when, one member's clock does, and the others follow it.
class Validations {
 public:
  // Of the training time, that all together take at most where nothing says how often.
  static constexpr double kShare = 0.02;
  // But this long from one's end to the next, however little they cost.
  static constexpr Duration kLeastBetween = Seconds(5);
  // Until one was made: what evaluating a sample costs, of what training on it does. A forward pass
  // is a third of forward and backward passes.
  static constexpr double kForwardShare = 1.0 / 3;

  explicit Validations(const ValidationOptions& options) : options_(options) {}

  // Whether any are made.
  bool on() const { return options_.policy != ValidationPolicy::kNone && options_.samples > 0; }

  // Whether one is due at this edge, by what all members know; never where time says when.
  bool DueByCount(const ValidationMark& mark) const;
  // Whether time says when, and this member's clock says that it has come.
  bool DueByTime(const ValidationMark& mark) const;

  // Whether a loss is lower than all before. One that is not finite never is.
  bool IsBest(double loss) const;

  // One was made at `mark`, whose `trained` is at its end, and training stood still for `cost`.
  void Take(const Validation& validation, const ValidationMark& mark, Duration cost);

  const ValidationState& state() const { return state_; }
  // Goes on from a former group's. Losses over another number of samples are no series with those
  // to come: of such a group only the cost counts.
  void Restore(const ValidationState& state);

 private:
  ValidationOptions options_;
  ValidationState state_;
};

}  // namespace tactus::engine
