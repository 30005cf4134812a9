#include "agent/subset/facility_location.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>

#include "agent/engine/samples/permutation.h"
#include "base/check.h"
#include "cuda/ops/clones.h"

namespace tactus::subset {
namespace {

// Longer ones count as this long: twice as far is still a number.
constexpr float kLongest = 0x1p125f;

// Asks now and then, by what was computed, whether to go on.
class Work {
 public:
  explicit Work(const std::function<bool()>& go_on) : go_on_(go_on) {}

  bool goes_on() const { return goes_on_; }
  // So much more was computed.
  void Add(std::size_t products) {
    since_ += products;
    if (!goes_on_ || since_ < kProductsBetween) return;
    since_ = 0;
    goes_on_ = !go_on_ || go_on_();
  }

 private:
  const std::function<bool()>& go_on_;
  std::size_t since_ = 0;
  bool goes_on_ = true;
};

// To multiples of the last place of `shift`.
TACTUS_VECTOR_CLONES void Round(std::span<float> ways, double shift) {
  for (float& way : ways) {
    way = static_cast<float>(static_cast<double>(std::min(way, kLongest)) + shift - shift);
  }
}

// Distances from points of some to all of them, on a grid on which they can be added up.
class Distances {
 public:
  // weight  the sum of the weights that they are added up by
  Distances(const Points& points, std::uint64_t weight, Work& work)
      : points_(points), to_(points), work_(work), n_(points.size()), known_(n_) {
    together_ =
        std::clamp<std::size_t>(kProductsBetween / points.values.size(), 1, DistancesTo::kTogether);
    // Not filled with zeros: half a second of one core where they are many.
    ways_ = std::make_unique_for_overwrite<float[]>(n_ * n_);
    const std::size_t first = 0;
    for (const float way : From(std::span(&first, 1)).front()) bound_ = std::max(bound_, way);
    bound_ *= 2;
    // What a distance is rounded to is the last place of this. A sum is less than 2^(the bits of
    // the weight) distances, which are less than 2^(exponent + 1), whatever rounding did to the
    // bound: 2^52 of that place.
    int exponent = 0;
    static_cast<void>(std::frexp(bound_, &exponent));
    shift_ = std::ldexp(1.5, exponent + static_cast<int>(std::bit_width(weight)) + 1);
    // The first row was not on the grid yet.
    known_.assign(known_.size(), false);
  }

  // No distance is longer, but for rounding.
  float bound() const { return bound_; }
  // Of so many points at most, and better no fewer, From is asked at once.
  std::size_t together() const { return together_; }

  // The distances of each to all. Valid until the next call.
  const std::vector<std::span<const float>>& From(std::span<const std::size_t> points) {
    found_.clear();
    wanted_.clear();
    for (const std::size_t point : points) {
      const std::span<float> ways(ways_.get() + point * n_, n_);
      found_.push_back(ways);
      if (known_[point]) continue;
      wanted_.push_back({.from = points_.Row(point), .ways = ways});
      known_[point] = true;
    }
    to_.Compute(wanted_);
    for (const DistancesTo::Row& row : wanted_) Round(row.ways, shift_);
    work_.Add(found_.size() * n_ + wanted_.size() * points_.values.size());
    return found_;
  }

 private:
  const Points points_;
  const DistancesTo to_;
  Work& work_;
  const std::size_t n_;
  std::size_t together_ = 1;
  std::unique_ptr<float[]> ways_;  // [n, n]
  std::vector<bool> known_;        // of its rows
  std::vector<std::span<const float>> found_;
  std::vector<DistancesTo::Row> wanted_;
  float bound_ = 0;
  double shift_ = 0;
};

// What each could bring to a point is less, now that its nearest picked one is not `before` but
// `after` away: row has the point's distances.
TACTUS_VECTOR_CLONES void Lower(std::span<double> gains, std::span<const float> row, float before,
                                float after, double weight) {
  for (std::size_t j = 0; j < gains.size(); ++j) {
    const float still = std::min(before, std::max(after, row[j]));
    gains[j] -= weight * (static_cast<double>(before) - static_cast<double>(still));
  }
}

TACTUS_VECTOR_CLONES void Add(std::span<double> sums, std::span<const float> row, double weight) {
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += weight * static_cast<double>(row[j]);
}

class Greedy {
 public:
  Greedy(const Points& points, const GreedyOptions& options)
      : work_(options.go_on),
        options_(options),
        weights_(WeightsOf(options, points.size())),
        weight_(std::accumulate(weights_.begin(), weights_.end(), 0.0)),
        distances_(points, static_cast<std::uint64_t>(weight_), work_),
        owner_(points.size()) {
    nearest_.assign(points.size(), distances_.bound());
  }

  Picked Run() {
    if (distances_.bound() == 0) {
      PickAny();
    } else {
      PickOfAll();
    }
    return work_.goes_on() ? Result() : Picked{};
  }

 private:
  static std::vector<double> WeightsOf(const GreedyOptions& options, std::size_t points) {
    if (options.weights.empty()) return std::vector<double>(points, 1.0);
    TACTUS_CHECK(options.weights.size() == points);
    return {options.weights.begin(), options.weights.end()};
  }

  // Calls use(k, distances of the kth of some points), until it is to end.
  template <typename Use>
  void ForRows(std::span<const std::size_t> points, const Use& use) {
    for (std::size_t at = 0; at < points.size() && work_.goes_on(); at += distances_.together()) {
      const auto some = points.subspan(at, std::min(distances_.together(), points.size() - at));
      const std::vector<std::span<const float>>& rows = distances_.From(some);
      for (std::size_t k = 0; k < rows.size(); ++k) use(at + k, rows[k]);
    }
  }

  void Take(std::size_t point, double gain) {
    const std::span<const float> row = distances_.From(std::span(&point, 1)).front();
    changed_.clear();
    before_.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] >= nearest_[i]) continue;
      changed_.push_back(i);
      before_.push_back(nearest_[i]);
      nearest_[i] = row[i];
      owner_[i] = picked_.points.size();
    }
    owner_[point] = picked_.points.size();
    picked_.points.push_back(point);
    picked_.gains.push_back(gain);
  }

  // Or ended before it is.
  bool full() const { return picked_.points.size() == options_.budget || !work_.goes_on(); }

  std::vector<std::size_t> All() const {
    std::vector<std::size_t> all(nearest_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  void PickOfAll() {
    std::vector<double> gains = FirstGains();
    while (!full()) {
      const auto best = std::ranges::max_element(gains);
      const auto point = static_cast<std::size_t>(best - gains.begin());
      Take(point, *best);
      ForRows(changed_, [&](std::size_t k, std::span<const float> row) {
        const std::size_t i = changed_[k];
        Lower(gains, row, before_[k], nearest_[i], weights_[i]);
      });
      // Stays: nobody's nearest was farther than a picked one.
      gains[point] = -1;
    }
  }

  // sum_i w_i (D - d_ij) of each j.
  std::vector<double> FirstGains() {
    std::vector<double> sums(nearest_.size());
    float longest = 0;
    ForRows(All(), [&](std::size_t i, std::span<const float> row) {
      Add(sums, row, weights_[i]);
      longest = std::max(longest, *std::ranges::max_element(row));
    });
    for (double& sum : sums) sum = weight_ * static_cast<double>(longest) - sum;
    std::ranges::fill(nearest_, longest);
    return sums;
  }

  void PickAny() {
    const engine::EpochPermutation order(nearest_.size(), options_.seed, 0);
    for (std::size_t i = 0; !full(); ++i) Take(static_cast<std::size_t>(order.At(i)), 0);
  }

  Picked Result() {
    picked_.weights.assign(picked_.points.size(), 0);
    for (std::size_t i = 0; i < owner_.size(); ++i) {
      picked_.weights[owner_[i]] += static_cast<std::uint64_t>(weights_[i]);
      picked_.error += weights_[i] * static_cast<double>(nearest_[i]);
    }
    picked_.value = std::accumulate(picked_.gains.begin(), picked_.gains.end(), 0.0);
    return std::move(picked_);
  }

  Work work_;
  const GreedyOptions options_;
  const std::vector<double> weights_;
  const double weight_;  // their sum
  Distances distances_;
  std::vector<float> nearest_;        // the way to the nearest picked one; before the first, D
  std::vector<std::size_t> owner_;    // which of the picked that is
  std::vector<std::size_t> changed_;  // whose nearest the last pick is,
  std::vector<float> before_;         // and how far the one before was
  Picked picked_;
};

}  // namespace

Picked PickGreedily(const Points& points, const GreedyOptions& options) {
  TACTUS_CHECK(options.budget >= 1 && options.budget <= points.size());
  return Greedy(points, options).Run();
}

}  // namespace tactus::subset
