#include "agent/subset/facility_location.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

#include "agent/engine/samples/permutation.h"
#include "base/check.h"
#include "base/rng.h"

namespace tactus::subset {
namespace {

constexpr std::size_t kLanes = 8;

// Asks now and then, by what was computed, whether to go on.
class Work {
 public:
  explicit Work(const std::function<bool()>& go_on) : go_on_(go_on) {}

  bool goes_on() const { return goes_on_; }
  // Whether to go on, now that so much more is to be computed.
  bool Add(std::size_t products) {
    since_ += products;
    if (!goes_on_ || since_ < kProductsBetween) return goes_on_;
    since_ = 0;
    goes_on_ = !go_on_ || go_on_();
    return goes_on_;
  }

 private:
  const std::function<bool()>& go_on_;
  std::size_t since_ = 0;
  bool goes_on_ = true;
};

// Distances from one point to all: rows are computed by columns, which lie together, so that a
// compiler has many points in a register.
class Distances {
 public:
  Distances(const Points& points, Work& work)
      : points_(points), columns_(points.values.size()), row_(points.size()) {
    const std::size_t n = points.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < points.width; ++k) {
        columns_[k * n + i] = points.values[i * points.width + k];
      }
    }
    if (n > kCachedPoints) return;
    all_.resize(n * n);
    for (std::size_t i = 0; i < n && work.Add(points.values.size()); ++i) {
      Compute(i, std::span(all_).subspan(i * n, n));
    }
  }

  // Products that a row takes.
  std::size_t cost() const { return all_.empty() ? points_.values.size() : points_.size(); }

  // Valid until the next call.
  std::span<const float> From(std::size_t point) {
    const std::size_t n = points_.size();
    if (!all_.empty()) return std::span<const float>(all_).subspan(point * n, n);
    Compute(point, row_);
    return row_;
  }

 private:
  // The same sums as Distance, in the same order.
  void Compute(std::size_t point, std::span<float> row) const {
    const std::size_t n = points_.size();
    std::ranges::fill(row, 0.0f);
    for (std::size_t k = 0; k < points_.width; ++k) {
      const float* const column = columns_.data() + k * n;
      const float own = column[point];
      for (std::size_t i = 0; i < n; ++i) {
        const float apart = column[i] - own;
        row[i] += apart * apart;
      }
    }
    for (std::size_t i = 0; i < n; ++i) row[i] = std::sqrt(row[i]);
  }

  const Points points_;
  std::vector<float> columns_;
  std::vector<float> all_;
  std::vector<float> row_;
};

class Greedy {
 public:
  Greedy(const Points& points, const GreedyOptions& options)
      : work_(options.go_on),
        distances_(points, work_),
        options_(options),
        nearest_(points.size()),
        owner_(points.size()) {
    TACTUS_CHECK(options.budget >= 1 && options.budget <= points.size());
    TACTUS_CHECK(options.weights.empty() || options.weights.size() == points.size());
    weights_.assign(points.size(), 1.0f);
    for (std::size_t i = 0; i < options.weights.size(); ++i) {
      weights_[i] = static_cast<float>(options.weights[i]);
    }
    const bool bounded = points.size() > kCachedPoints;
    for (std::size_t i = 0; i < (bounded ? 1 : points.size()); ++i) {
      for (const float distance : Row(i)) longest_ = std::max(longest_, distance);
    }
    if (bounded) longest_ *= 2;
    std::ranges::fill(nearest_, longest_);
  }

  Picked Run() {
    if (longest_ == 0) {
      PickAny();
    } else if (options_.sample > 0) {
      PickOfSamples();
    } else {
      PickOfAll();
    }
    return work_.goes_on() ? Result() : Picked{};
  }

 private:
  struct Bound {
    double gain = 0;
    std::size_t point = 0;
  };
  // Whether one is picked before the other.
  static bool Before(const Bound& one, const Bound& other) {
    return one.gain != other.gain ? one.gain > other.gain : one.point < other.point;
  }

  std::span<const float> Row(std::size_t point) {
    work_.Add(distances_.cost());
    return distances_.From(point);
  }

  // Each term falls as nearest_ does, and rounding keeps order: so does the sum, bit for bit.
  double GainOf(std::size_t point) {
    const std::span<const float> row = Row(point);
    std::array<double, kLanes> sums{};
    const std::size_t n = row.size();
    const std::size_t whole = n / kLanes * kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += weights_[i + lane] * std::max(0.0f, nearest_[i + lane] - row[i + lane]);
      }
    }
    for (std::size_t i = whole; i < n; ++i) {
      sums[i - whole] += weights_[i] * std::max(0.0f, nearest_[i] - row[i]);
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  void Take(const Bound& best) {
    const std::span<const float> row = Row(best.point);
    const bool first = picked_.points.empty();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!first && row[i] >= nearest_[i]) continue;
      nearest_[i] = row[i];
      owner_[i] = picked_.points.size();
    }
    owner_[best.point] = picked_.points.size();
    nearest_[best.point] = 0;
    picked_.points.push_back(best.point);
    picked_.gains.push_back(best.gain);
  }

  // Or ended before it is.
  bool full() const { return picked_.points.size() == options_.budget || !work_.goes_on(); }

  void PickOfAll() {
    const auto after = [](const Bound& one, const Bound& other) { return Before(other, one); };
    std::vector<Bound> bounds;
    for (std::size_t i = 0; i < nearest_.size() && work_.goes_on(); ++i) {
      bounds.push_back({GainOf(i), i});
    }
    std::priority_queue queue(after, std::move(bounds));
    while (!full()) {
      Bound best = queue.top();
      queue.pop();
      best.gain = GainOf(best.point);
      if (queue.empty() || Before(best, queue.top())) {
        Take(best);
      } else {
        queue.push(best);
      }
    }
  }

  void PickOfSamples() {
    Rng rng(options_.seed);
    std::vector<std::size_t> left(nearest_.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (!full()) {
      const std::size_t drawn = std::min(options_.sample, left.size());
      std::size_t at = 0;
      Bound best{.gain = -1};
      for (std::size_t i = 0; i < drawn && work_.goes_on(); ++i) {
        std::swap(left[i], left[i + rng.Below(left.size() - i)]);
        const Bound bound{GainOf(left[i]), left[i]};
        if (Before(bound, best)) best = bound, at = i;
      }
      Take(best);
      left[at] = left.back();
      left.pop_back();
    }
  }

  void PickAny() {
    const engine::EpochPermutation order(nearest_.size(), options_.seed, 0);
    for (std::size_t i = 0; !full(); ++i) {
      Take({.gain = 0, .point = static_cast<std::size_t>(order.At(i))});
    }
  }

  Picked Result() {
    picked_.weights.assign(picked_.points.size(), 0);
    for (std::size_t i = 0; i < owner_.size(); ++i) {
      const std::uint64_t weight = options_.weights.empty() ? 1 : options_.weights[i];
      picked_.weights[owner_[i]] += weight;
      picked_.error += static_cast<double>(weight) * nearest_[i];
    }
    picked_.value = std::accumulate(picked_.gains.begin(), picked_.gains.end(), 0.0);
    return std::move(picked_);
  }

  Work work_;
  Distances distances_;
  const GreedyOptions options_;
  std::vector<float> weights_;
  std::vector<float> nearest_;      // the way to the nearest picked one; before the first, D
  std::vector<std::size_t> owner_;  // which of the picked that is
  float longest_ = 0;
  Picked picked_;
};

}  // namespace

float Distance(std::span<const float> one, std::span<const float> other) {
  float sum = 0;
  for (std::size_t k = 0; k < one.size(); ++k) {
    const float apart = one[k] - other[k];
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

Picked PickGreedily(const Points& points, const GreedyOptions& options) {
  return Greedy(points, options).Run();
}

std::size_t SampleOf(std::size_t points, std::size_t budget, double delta) {
  TACTUS_CHECK(budget >= 1 && delta > 0 && delta < 1);
  const double wanted =
      static_cast<double>(points) / static_cast<double>(budget) * std::log(1 / delta);
  return static_cast<std::size_t>(std::ceil(wanted));
}

}  // namespace tactus::subset
