// The course of the loss over the whole of training, thinned so that it stays small.

#pragma once

#include <cstdint>
#include <deque>

#include "base/fields.h"
namespace tactus::policies {

// A least-squares line of the loss over the logarithm of training time, and how sure it is. Its
// errors are those of independent rounds.
struct LossLine {
  std::uint64_t rounds = 0;
  double center = 0;  // mean ln(seconds)
  double mean = 0;    // mean loss
  double fall = 0;    // -d loss / d ln(seconds); 0 where there are too few rounds to tell
  // One standard error each; infinite where there are too few rounds to tell.
  double mean_error = 0;
  double fall_error = 0;
  double spread = 0;  // standard deviation of a round around the line; infinite likewise

  // The loss at another time, by the line, and one standard error of it.
  double At(double log_seconds) const { return mean - fall * (log_seconds - center); }
  double ErrorAt(double log_seconds) const;
};
void Fields(auto& archive, Of<LossLine> auto& line) {
  archive("rounds", line.rounds);
  archive("center", line.center);
  archive("mean", line.mean);
  archive("fall", line.fall);
  archive("mean_error", line.mean_error);
  archive("fall_error", line.fall_error);
  archive("spread", line.spread);
}

// Keeps sums over stretches of time that grow with it, so that hours take no more room than
// minutes.
//
// Pure; not thread-safe.
class LossHistory {
 public:
  static constexpr double kStretch = 0.01;  // of ln(seconds)
  static constexpr std::size_t kStretchesMax = 2048;
  static constexpr std::uint64_t kRoundsMin = 4;  // of a line

  // A round under the plan `version` that ended at `seconds` of training > 0, which do not fall.
  void Add(std::uint64_t version, double seconds, double loss);

  // Of rounds with first <= plan version < end that ended after `from`.
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    double from = 0;  // [s]
  };
  LossLine Fit(const Span& span) const;

  friend void Fields(auto& archive, Of<LossHistory> auto& history) {
    archive("stretches", history.stretches_);
  }
  friend bool Sound(const LossHistory& history) {
    return history.stretches_.size() <= kStretchesMax;
  }

 private:
  struct Stretch {
    std::uint64_t version = 0;
    double begin = 0;  // [s] end of its first round
    double rounds = 0;
    double log_seconds = 0;  // sums
    double loss = 0;
    double loss2 = 0;

    friend void Fields(auto& archive, Of<Stretch> auto& stretch) {
      archive("version", stretch.version);
      archive("begin", stretch.begin);
      archive("rounds", stretch.rounds);
      archive("log_seconds", stretch.log_seconds);
      archive("loss", stretch.loss);
      archive("loss2", stretch.loss2);
    }
  };
  std::deque<Stretch> stretches_;
};

}  // namespace tactus::policies
