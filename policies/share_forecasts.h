// Which shares of a batch the coming stretch of time calls for, and how far to believe it.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/fields.h"
#include "policies/planner_options.h"
#include "policies/speed_stretches.h"

namespace tactus::policies {

// Shares that a memory of the speeds asks for.
struct ShareForecast {
  std::vector<std::uint32_t> sizes{};
  std::vector<double> speeds{};  // [samples/s] that they follow
  double gain = 0;               // relative fall of the longest step that these speeds promise
  double expected = 0;           // what such promises were worth
};

// Several forecasters of the same speeds, each with its memory, judged by what their shares would
// have been worth. Forecaster k knows each rank's speed as a mean of log(speed) over the samples of
// the stretches, whose weights fall with e in 2^k stretches; what an isolated stretch says is left
// out (the median of the latest three, by samples). After each stretch it promises, for its shares
// b' against the sizes b in force,
//
//   g = 1 - longest(b', v) / longest(b, v),   longest(b, v) = max_i b_i / v_i
//
// v its own speeds; and kDelay stretches later, when such a change would be in force, the speeds y
// of that stretch alone say what it would have brought, whether it was made or not:
//
//   r = 1 - longest(b', y) / longest(b, y)
//
// What is to be expected of a promise g is what became of those of its size (kSizes), a mean with a
// memory of kPromises of them, with a margin, and of kPrior made-up ones; never more than g:
//
//   (kPrior (g - kDoubt N / (n g)) + m g (mean r - kErrors e) / mean g) / (kPrior + m)
//
// m  promises of that size that were judged;  e  one standard error of their mean r
// n  stretches that the forecaster remembers
// N  its noise of one stretch, the mean of n g (g - r) over promises of all sizes, at first
//    2 kNoiseInitial^2: noise promises sqrt(N / n), and keeps nothing of it
//
// So a worker that slows down for seconds is followed if such slow-downs were seen to last, and not
// if they were seen to come and go; and no noise needs a model.
//
// A batch costs a fixed time beside that of its samples, so speeds change with the sizes: when
// those change, what was measured before counts for kAged of what it did.
//
// Pure and total; not thread-safe.
//
// Source: design; experts that are judged by what they would have lost are of online learning.
class ShareForecasts {
 public:
  static constexpr int kForecasters = 10;
  static constexpr int kDelay = 2;
  static constexpr double kPromises = 64;
  static constexpr double kPrior = 4;
  static constexpr double kDoubt = 6;
  static constexpr double kErrors = 2;
  static constexpr double kNoiseInitial = 0.10;
  static constexpr double kAged = 0.2;
  // Where the sizes of promises part.
  static constexpr std::array<double, 4> kSizes = {0.04, 0.08, 0.16, 0.32};

  explicit ShareForecasts(const BatchOptions& options) : options_(options) {}

  // A (new) group.
  void Start();

  // A worker's device is known to be faster or slower from now on: what was measured so far counts
  // for kAged of what it did, and the next stretch is not held for an isolated one.
  void Shift();

  // Folds a stretch in; the next ones are to share out `total` samples a step.
  void Observe(const SpeedStretch& stretch, std::uint64_t total);

  // The forecast against the sizes in force of which most is expected. REQUIRES: a stretch was
  // observed; one size a rank.
  ShareForecast Best(const std::vector<std::uint32_t>& in_force, std::uint64_t total) const;

  // Whether all that is kept is of so many ranks; true before the first stretch.
  bool Suits(std::size_t ranks) const;
  // Whether a stretch was observed since Start().
  bool any() const { return !latest_.empty(); }

  friend void Fields(auto& archive, Of<ShareForecasts> auto& forecasts) {
    archive("latest", forecasts.latest_);
    archive("shifted", forecasts.shifted_);
    archive("plan_version", forecasts.plan_version_);
    archive("sizes", forecasts.sizes_);
    archive("total", forecasts.total_);
    archive("forecasters", forecasts.forecasters_);
  }
  friend bool Sound(const ShareForecasts& forecasts) {
    return !forecasts.any() || forecasts.Suits(forecasts.latest_.back().logs.size());
  }

 private:
  struct Promise {
    std::vector<std::uint32_t> in_force{};
    std::vector<std::uint32_t> sizes{};
    double gain = 0;

    friend void Fields(auto& archive, Of<Promise> auto& promise) {
      archive("in_force", promise.in_force);
      archive("sizes", promise.sizes);
      archive("gain", promise.gain);
    }
  };
  // What became of promises.
  struct Record {
    double judged = 0;    // at most kPromises
    double promised = 0;  // mean g
    double kept = 0;      // mean r
    double kept2 = 0;     // mean r^2

    void Fold(double gain, double true_gain);
    // What is to be expected of a promise, where `prior` is before any was judged.
    double Expect(double gain, double prior) const;

    friend void Fields(auto& archive, Of<Record> auto& record) {
      archive("judged", record.judged);
      archive("promised", record.promised);
      archive("kept", record.kept);
      archive("kept2", record.kept2);
    }
  };
  struct Forecaster {
    double memory = 1;               // [stretches]
    double stretches = 0;            // that it remembers, <= its memory + 1
    double weight = 0;               // [samples] the sum of their weights
    std::vector<double> log_sums{};  // of weight x log(speed), one a rank
    std::deque<Promise> promises{};  // not due yet, at most kDelay
    double judged = 0;               // of its promises, at most kPromises
    double noise = 0;                // N
    std::array<Record, kSizes.size() + 1> of_size{};

    friend void Fields(auto& archive, Of<Forecaster> auto& forecaster) {
      archive("memory", forecaster.memory);
      archive("stretches", forecaster.stretches);
      archive("weight", forecaster.weight);
      archive("log_sums", forecaster.log_sums);
      archive("promises", forecaster.promises);
      archive("judged", forecaster.judged);
      archive("noise", forecaster.noise);
      archive("of_size", forecaster.of_size);
    }
  };

  // What a stretch said.
  struct Latest {
    double samples = 0;
    std::vector<double> logs{};  // log(speed), one a rank

    friend void Fields(auto& archive, Of<Latest> auto& latest) {
      archive("samples", latest.samples);
      archive("logs", latest.logs);
    }
  };

  // Whether the stretch ran under other sizes than the one before, which sizes_ are then. A step
  // that is smaller than its plan's, an epoch's last, has no sizes of its own.
  bool Resized(const SpeedStretch& stretch);
  std::vector<double> Filtered() const;
  static void Age(Forecaster& forecaster);
  static void Remember(Forecaster& forecaster, const std::vector<double>& logs, double samples);
  static std::vector<double> SpeedsOf(const Forecaster& forecaster);
  Promise MakePromise(const Forecaster& forecaster, const std::vector<std::uint32_t>& in_force,
                      std::uint64_t total) const;
  static double Expected(const Forecaster& forecaster, double gain);
  static bool Suits(const Forecaster& forecaster, std::size_t ranks);
  static void Judge(Forecaster& forecaster, const std::vector<double>& speeds);

  const BatchOptions options_;
  std::deque<Latest> latest_;
  bool shifted_ = false;              // since the latest stretch
  std::uint64_t plan_version_ = 0;    // of the latest stretch
  std::vector<std::uint32_t> sizes_;  // of that plan, as far as was seen
  std::uint64_t total_ = 0;           // [samples] that the latest promises share out
  std::array<Forecaster, kForecasters> forecasters_{};
};

}  // namespace tactus::policies
