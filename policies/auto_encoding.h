// In which form vectors travel, by what fewer bytes are measured to save.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/change_trial.h"
#include "policies/period_canary.h"

namespace tactus::policies {

// Prices every encoding e that is for_auto (EncodingRow), from the exchange under the one in force,
// f, and compares what a second would teach, by Forecast and UsefulSamples of the plan that comes
// of it, times what a sample under e was found to be worth:
//
//   D_e = (D - E_f) share_e / share_f + E_e
//   E   = min(updates u, seconds_per_value n), as its row has them
//
// D  [s]  transfer of a round, as measured; what of it is latency is not known apart, so that D_e
//         may be too short, and a trial tells
// E  [s]  what encoding and decoding take of a round, on the slowest member
// u  [s]  what the update at a round's end takes there, the median of the latest rounds: a pass
//         over as many values, on the same device
// n  [1]  values that travel: the bytes of a round whose share does not hang on the values
//
// The share of one that hangs on them is its row's estimate until it was in force for a few rounds,
// then the median of what its latest rounds have sent.
//
// On one core of the machine of docs/benchmarks.md the largest magnitude, float16 of it and back
// take 4.6 ns a value where four members sum, eight times as long as an update of sgd with
// momentum, and dq 23. Other optimizers' updates take longer, which the second bound is for; on a
// GPU an update's time is the host's, so that E of float16 is as good as nothing there, and dq's,
// which is the host's work, is found by its trial.
//
// The best of those that are judged by time goes on trial where it promises kGainMin: a
// ChangeTrial, which ends sooner as soon as the new transfer is known. It has paid with half of
// what it promised, and has not where it promised kGainLarge and brought less than kGainKept; at
// its end kGainKept is enough. So a slow link has fewer bytes within its first rounds, and a period
// is chosen for the transfer that they take. What did not pay is tried again when the training time
// is kPauseRegretted times as long, anything else when it is kPause times.
//
// Where a transfer takes so long that another period is chosen for the new one, that is done in the
// same plan (Planner::Join), and the rounds after the change are others than before it. Then the
// transfer alone tells, when it is measured: it has paid with half of the seconds that were
// promised.
//
// Where none of them does, the best of those that are judged by the loss is tried, if it promises
// kGainMinByLoss: what they cost of progress no forecast knows. That is a PeriodCanary, whose least
// length is counted in rounds as they should be with it, so that it may begin soonest where links
// are slowest. It is over where its first rounds are found to bring less than kGainKept.
//
//   noise (dq)         holds the loss up, and leaves the way that a sample goes as it was: judged
//                      by the loss at common parameters and the pace, kept only where it paid for
//                      certain (PeriodCanary::kErrors)
//   residual (adacomp) comes late, and what that costs is the way that a sample goes: judged by the
//                      loss alone (PeriodCanary::Setting::of_progress), kept only where it fell
//                      lower for certain than going on would have led; likewise dq after it
//
// What a sample was found to be worth is a part of the next comparison, half of what it lacks is
// given back when the training time has doubled. Each that did not pay has a pause of its own: the
// other is tried before it again; and members go back to the parameters of before where the loss
// certainly rose. Residuals are tried only where the job asks for every_step: local steps leave so
// little of a round to be saved that its canary would cost more.
//
// What a residual left out is gone when another encoding comes into force (engine::Encodings),
// whichever side of a canary that is: what it was of are old gradients then.
//
// Where a round is lost to numbers that are not finite, and none was dense, dense is gone back to.
//
// Adasum has dense vectors, and averages after it what they had before. A group that meets anew
// goes on with what was found, a job's first one with a Prior's. Without one it begins with float16
// where that pays for certain by the members' links (StartingGroup::EncodingByLinks), and is not on
// trial: nothing was measured before it that it could be compared with.
//
// Source: design.
class AutoEncoding final : public RememberingPolicy<AutoEncoding> {
 public:
  static constexpr double kGainMin = 0.05;
  static constexpr double kGainMinByLoss = 0.50;
  static constexpr double kGainKept = 0.02;
  static constexpr double kGainLarge = 0.30;
  static constexpr double kPause = 1.5;
  static constexpr double kPauseRegretted = 3;

  struct Options {
    double base_batch = 32;  // [samples] > 0
    double loss_floor = 0;   // F_inf
    bool residuals = false;  // whether those that leave something out are tried
  };
  explicit AutoEncoding(const Options& options) : options_(options) {}

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  bool OnTrial() const override { return trial_ || canary_; }
  std::string Follow(Plan& plan, const Observations& seen) const override;

  friend void Fields(auto& archive, Of<AutoEncoding> auto& policy) {
    archive("found", policy.found_);
    archive("former", policy.former_);
    archive("trial", policy.trial_);
    archive("canary", policy.canary_);
    archive("promised", policy.promised_);
    archive("transfer_before", policy.transfer_before_);
    archive("transfer_promised", policy.transfer_promised_);
    archive("by_transfer", policy.by_transfer_);
    archive("due", policy.due_);
    archive("found_of", policy.found_of_);
    archive("values", policy.values_);
    archive("version", policy.version_);
    archive("seconds", policy.seconds_);
    archive("in_force", policy.in_force_);
  }

 private:
  // What was found of an encoding.
  struct Finding {
    double share = 0;    // of the bytes of float32, as measured in this group; 0: not yet
    double worth = 1;    // of a sample, over one of dense rounds; in (0, 1]
    double seconds = 0;  // training time when that was found
    double due = 0;      // from which on it may be tried again

    friend void Fields(auto& archive, Of<Finding> auto& finding) {
      archive("share", finding.share);
      archive("worth", finding.worth);
      archive("seconds", finding.seconds);
      archive("due", finding.due);
    }
    friend bool Sound(const Finding& finding) {
      return finding.share >= 0 && finding.worth > 0 && finding.worth <= 1;
    }
  };
  // An encoding as it is expected to be.
  struct Candidate {
    Plan plan{};
    double transfer = 0;  // [s]
    double useful = 0;    // [useful samples/s], times what a sample is worth
    double round_seconds = 0;
  };
  void Note(const Situation& situation);
  void NoteBytes(const Observations& seen);
  Finding& Of(Encoding encoding) { return found_of_[static_cast<std::size_t>(encoding)]; }
  const Finding& Of(Encoding encoding) const {
    return found_of_[static_cast<std::size_t>(encoding)];
  }
  double ShareIn(Encoding encoding, const Observations& seen) const;
  double WorthIn(Encoding encoding, const Observations& seen) const;
  double EncodeSeconds(Encoding encoding, const Observations& seen) const;
  bool MayTry(const EncodingRow& row, ForAuto judged, const Situation& situation) const;
  Candidate Price(Encoding encoding, const Situation& situation) const;
  Candidate Best(ForAuto judged, const Situation& situation) const;
  std::optional<Proposal> Try(const Situation& situation);
  std::optional<Proposal> TryByLoss(const Situation& situation, double now);
  Proposal Change(const Situation& situation, const Candidate& to, double now) const;
  std::optional<Proposal> Judge(const Situation& situation);
  std::optional<Proposal> JudgeByTransfer(const Situation& situation);
  std::optional<Proposal> JudgeByLoss(const Situation& situation);
  std::optional<double> MeasuredGain(std::uint64_t version_before, std::uint64_t version,
                                     const Observations& seen) const;
  std::string BroughtTooLittle(double gain) const;
  void NoteWorth(const PeriodCanary::Outcome& outcome, const Observations& seen);
  Proposal GoBack(const Situation& situation, Encoding to, Decision decision);
  Proposal Regret(const Situation& situation, Encoding to, Decision decision);
  Proposal Leave(const Situation& situation, double pause, Decision decision);

  const Options options_;
  Encoding found_ = Encoding::kDense;   // what averages travel as; on trial, the one that is tried
  Encoding former_ = Encoding::kDense;  // before the trial
  std::optional<ChangeTrial> trial_;    // one of the two at most
  std::optional<PeriodCanary> canary_;
  double promised_ = 0;           // by the change on trial
  double transfer_before_ = 0;    // of a round, before it [s]
  double transfer_promised_ = 0;  // by it [s]
  bool by_transfer_ = false;      // the trial is judged, as rounds became others with it
  double due_ = 0;                // training time from which on something may be tried
  std::array<Finding, kEncodingNames.size()> found_of_{};  // by Encoding
  double values_ = 0;             // that travel in a round; 0: no round has told
  std::uint64_t version_ = 0;     // the first plan with what is in force of exchanges and rate
  double seconds_ = 0;            // training time since when
  std::optional<Plan> in_force_;  // at the last look, in this group
};

}  // namespace tactus::policies
