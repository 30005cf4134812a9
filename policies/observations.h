// What a group saw so far, folded once for all policies: speeds, transfer, loss, time.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "policies/gradient_noise.h"
#include "policies/link_rates.h"
#include "policies/loss_history.h"
#include "policies/loss_trend.h"
#include "policies/loss_window.h"
#include "policies/plan.h"
#include "policies/plan_fields.h"
#include "policies/speed_estimator.h"

namespace tactus::policies {

// One round that all members reported.
struct WholeRound {
  std::uint64_t round = 0;
  std::uint64_t plan_version = 0;
  Synchronization synchronization = Synchronization::kEveryStep;
  Aggregation aggregation = Aggregation::kAverage;
  LearningRateRule learning_rate_rule = LearningRateRule::kConstant;
  Encoding encoding = Encoding::kDense;
  double seconds_end = 0;       // training time at its end
  double seconds = 0;           // >= 0: the mean of the members', whose sum is the time passed
  double transfer_seconds = 0;  // D, see Observations::TransferSeconds; >= 0
  double compute_seconds = 0;   // of the member that computed longest
  // The same with the batch sizes of the plan before, at the speeds of this round; 0 without such.
  double compute_seconds_before = 0;
  double update_seconds = 0;     // of the member whose update took longest
  std::uint64_t bytes_sent = 0;  // of one member
  std::uint64_t samples = 0;     // of all members
  std::uint32_t steps = 0;       // most of one member
  std::uint32_t contributors = 0;
  double scheduled_rate = 0;  // learning rate without the rule's gain
  double gain = 1;            // of the rule, > 0
  double progress = 0;        // base steps after it; see policies/learning_rate.h
  double loss = 0;            // at common parameters, per sample; finite unless skipped
  bool skipped = false;       // nothing was learned: a member's numbers were not finite
};
void Fields(auto& archive, Of<WholeRound> auto& round) {
  archive("round", round.round);
  archive("plan_version", round.plan_version);
  archive("synchronization", round.synchronization);
  archive("aggregation", round.aggregation);
  archive("learning_rate_rule", round.learning_rate_rule);
  archive("encoding", round.encoding);
  archive("seconds_end", round.seconds_end);
  archive("seconds", round.seconds);
  archive("transfer_seconds", round.transfer_seconds);
  archive("compute_seconds", round.compute_seconds);
  archive("compute_seconds_before", round.compute_seconds_before);
  archive("update_seconds", round.update_seconds);
  archive("bytes_sent", round.bytes_sent);
  archive("samples", round.samples);
  archive("steps", round.steps);
  archive("contributors", round.contributors);
  archive("scheduled_rate", round.scheduled_rate);
  archive("gain", round.gain);
  archive("progress", round.progress);
  archive("loss", round.loss);
  archive("skipped", round.skipped);
}

// Folds reports into whole rounds; those that are late, repeated or of strangers are left out.
// Pure; not thread-safe.
class Observations {
 public:
  static constexpr int kRoundsKept = 512;
  static constexpr int kOpenRoundsMax = 16;  // reported by some members
  static constexpr int kTransfersKept = 15;  // [rounds] of which the transfer is the median
  // Of a speed or a transfer that is used; fewer where rounds are so long that they are means of
  // much already, and waiting for more of them would take what it is to save.
  static constexpr int kObservationsMin = 3;
  static constexpr double kSecondsEnough = 1;
  static constexpr int kOrthogonalityRounds = 20;

  // loss_floor: F_inf, that the loss never falls below. replica_members: BatchOptions'.
  explicit Observations(double loss_floor = 0, std::uint32_t replica_members = 1)
      : loss_floor_(loss_floor), replica_members_(replica_members) {}

  // A (new) group. Speeds and transfer are forgotten; the training time, the losses and the noise
  // scale are kept.
  void Start(const StartingGroup& group);
  const StartingGroup& group() const { return group_; }
  // What the members of one that goes on know; see StartingGroup.
  void Know(KnownEncodings encodings) { group_.encodings = std::move(encodings); }

  // Rounds of this version and later run under that plan, until another one is expected.
  void Expect(const Plan& plan);

  void Observe(const Report& report);

  // D is taken for that, which is expected of the newest plan, until it is measured. [s] >= 0
  void Foresee(double transfer_seconds) { transfers_.assign(kObservationsMin, transfer_seconds); }

  // How much training is left, as foreseen now; nothing: nobody knows. [s]
  void Outlook(std::optional<double> seconds_left) { seconds_left_ = seconds_left; }
  // Whether training goes on for so long as far as anybody knows.
  bool Lasts(double seconds) const { return !seconds_left_ || *seconds_left_ >= seconds; }

  std::uint32_t members() const { return static_cast<std::uint32_t>(estimators_.size()); }
  // There is one replica: nothing is combined. And a clause that says so.
  bool alone() const { return members() == replica_members_; }
  std::string_view WhyAlone() const {
    return members() == 1 ? "one member has nobody to exchange with"
                          : "one replica has nobody to exchange with";
  }
  // Of the whole rounds, oldest first, at most kRoundsKept; of former groups too.
  const std::deque<WholeRound>& rounds() const { return rounds_; }
  // The sum of the whole rounds' seconds.
  double seconds() const { return seconds_; }
  // The last whole round; 0 before.
  std::uint64_t last_round() const { return rounds_.empty() ? 0 : rounds_.back().round; }

  // Whether every member was seen kObservationsMin rounds at its speed, or rounds of kSecondsEnough
  // together in this group, as of the last whole round.
  bool SpeedsKnown() const { return speeds_known_; }
  // [samples/s] one a rank, as of the last whole round; 0 where nothing was seen.
  const std::vector<double>& speeds() const { return speeds_now_; }
  // Of all members together. [samples/s]
  double SpeedSum() const;
  // The longest step, max_i sizes_i / v_i. [s] REQUIRES: SpeedsKnown(), one size a rank.
  double StepSeconds(const std::vector<std::uint32_t>& sizes) const;

  // D, a round's transfer, >= 0: the median of the latest rounds, of those alone that exchanged
  // as the newest plan does; empty before kObservationsMin of them or kSecondsEnough of transfers.
  //
  //   D of one round = mean_i L_i - max_i (L_i - blocked_i)   every step and periodic
  //                    min_i transfer_i                       delayed: blocked or not
  //
  // L_i  [s]  from the end of the member's round before to that of this one
  //
  // That is by how much the round outlasted the longest time that a member had to itself. Where all
  // end a round at once it is what the last to come was blocked, min_i blocked_i. They do not: the
  // last to come has the others' vectors already and goes on, they wait for its own; so that it is
  // hardly blocked at all, and begins the next round as much earlier. A round then has D < 0 where
  // who began earlier was the longest.
  std::optional<double> TransferSeconds() const;

  // The link that this waits for, where it is slower than usual.
  std::optional<SlowLink> SlowestLink() const { return links_.Slow(); }

  // phi, the gradient noise scale (RoundNoise). [samples] Empty until it was measured; lasts
  // while rounds do not measure it, those of Adasum.
  std::optional<double> NoiseScale() const { return noise_.Samples(); }

  // How far the members' gradients agree (orthogonality.h), smoothed: a mean of the first
  // kOrthogonalityRounds, then an exponential average over as many; empty before.
  std::optional<double> Orthogonality() const;

  // The loss now, of a LossWindow; empty until it is full.
  std::optional<double> RecentLoss() const;

  // Of rounds with first <= plan version < end, without the `leave_out` earliest of them: the
  // latest `most` at most.
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    int leave_out = 0;
    int most = kRoundsKept;

    friend void Fields(auto& archive, Of<Span> auto& span) {
      archive("first", span.first);
      archive("end", span.end);
      archive("leave_out", span.leave_out);
      archive("most", span.most);
    }
    friend bool Sound(const Span& span) { return span.leave_out >= 0 && span.most >= 0; }
  };
  // The loss of all rounds that were not skipped, of former groups too.
  const LossHistory& history() const { return history_; }
  // Rounds that were skipped are left out.
  LossTrend Trend(const Span& span) const;
  // Indices into rounds(): [from, to).
  struct Range {
    std::size_t from = 0;
    std::size_t to = 0;
  };
  Range Find(const Span& span) const;
  // Whether a round of these was lost to numbers that are not finite.
  bool AnySkipped(const Range& range) const;

  // All but what of the group is of use at its start alone.
  friend void Fields(auto& archive, Of<Observations> auto& seen) {
    archive("estimators", seen.estimators_);
    archive("speeds_now", seen.speeds_now_);
    archive("speeds_known", seen.speeds_known_);
    archive("open", seen.open_);
    archive("rounds", seen.rounds_);
    archive("rounds_of_group", seen.rounds_of_group_);
    archive("seconds_of_group", seen.seconds_of_group_);
    archive("seconds", seen.seconds_);
    archive("losses", seen.losses_);
    archive("history", seen.history_);
    archive("transfers", seen.transfers_);
    archive("links", seen.links_);
    archive("noise", seen.noise_);
    archive("orthogonality", seen.orthogonality_);
    archive("orthogonality_rounds", seen.orthogonality_rounds_);
    archive("expected", seen.expected_);
    archive("before", seen.before_);
  }
  friend bool Sound(const Observations& seen);

 private:
  struct OpenRound {
    WholeRound sums{};
    std::vector<bool> reported{};
    std::uint32_t reports = 0;
    double own_seconds = 0;  // longest that a member was not blocked; infinite: not told

    friend void Fields(auto& archive, Of<OpenRound> auto& open) {
      archive("sums", open.sums);
      archive("reported", open.reported);
      archive("reports", open.reports);
      archive("own_seconds", open.own_seconds);
    }
  };

  OpenRound* Open(const Report& report);
  static std::optional<double> Outlasted(const OpenRound& open);
  void Close(WholeRound round, const Report& last, std::optional<double> transfer);
  void FoldGradients(const Report& last);
  const Plan& PlanOf(std::uint64_t version) const;
  bool ExchangesAsExpected(const WholeRound& round) const;
  // What computing the report's samples would have taken with the sizes of the plan before. [s]
  double ComputeSecondsBefore(const Report& report) const;

  const double loss_floor_;
  const std::uint32_t replica_members_;
  StartingGroup group_{};
  std::vector<SpeedEstimator> estimators_;  // one a rank
  std::vector<double> speeds_now_;          // what they say after the last whole round
  bool speeds_known_ = false;
  std::map<std::uint64_t, OpenRound> open_;
  std::deque<WholeRound> rounds_;
  std::uint64_t rounds_of_group_ = 0;
  double seconds_of_group_ = 0;
  double seconds_ = 0;
  std::optional<double> seconds_left_;
  LossWindow losses_;
  LossHistory history_;
  std::deque<double> transfers_;
  LinkRates links_;
  RoundNoise noise_;
  double orthogonality_ = 0;
  int orthogonality_rounds_ = 0;
  Plan expected_{};  // the newest plan
  Plan before_{};    // the one before it
};

}  // namespace tactus::policies
