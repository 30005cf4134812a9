#include "agent/engine/one_bit_phase.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent/engine/member.h"
#include "agent/engine/one_bit_state.h"
#include "base/check.h"
#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

constexpr double kSteady = 0.96;      // of two sums of second moments, the less over the greater
constexpr std::uint64_t kLooks = 10;  // for which it has to hold
constexpr double kEarliest = 0.15;    // of the training

bool SeesEnd(const StopOptions& stop) { return stop.rounds || stop.epochs || stop.steps; }

// The steps between two looks: kLooks are the second moment's memory.
std::uint64_t StepsBetweenLooks(double beta2) {
  const double steps = std::round(1 / (1 - beta2) / static_cast<double>(kLooks));
  return static_cast<std::uint64_t>(std::max(1.0, steps));
}

std::vector<float> OnHost(cuda::Device& device, std::span<const float> values) {
  std::vector<float> copy(values.size());
  device.Copy(values, copy);
  device.Synchronize();
  return copy;
}

class Phase {
 public:
  Phase(Member& member, const policies::Plan& plan)
      : member_(member),
        optimizer_(member.optimizer),
        state_(member.optimizer.one_bit()),
        moments_(*member.optimizer.moments()),
        members_(plan.batch_sizes.size()) {}

  void Follow() {
    const bool look = optimizer_.steps() >= state_.next_look;
    if (look) state_.next_look = optimizer_.steps() + StepsBetweenLooks(moments_.beta2);
    if (state_.frozen) {
      if (look && IsOutOfDate()) Thaw();
    } else if (IsWarm(look)) {
      Freeze();
    }
  }

 private:
  bool IsWarm(bool look) {
    if (optimizer_.steps() == 0) return false;
    const std::uint64_t stated = member_.options.encoding.one_bit.warm_up;
    bool warm = member_.learning_rate.progress() - state_.begun >= static_cast<double>(stated);
    if (stated == 0) {
      if (look) LookAtVariance();
      const bool early = SeesEnd(member_.options.stop) && member_.progress() < kEarliest;
      warm = state_.looks >= kLooks && !early;
    }
    return warm && members_ > 1;
  }

  void LookAtVariance() {
    double sum = 0;
    for (const float v : OnHost(member_.device, optimizer_.State()[1])) sum += v;
    const double left = std::pow(moments_.beta2, static_cast<double>(optimizer_.second_steps()));
    sum /= 1 - left;
    const double less = std::min(sum, state_.variance);
    const double greater = std::max(sum, state_.variance);
    const bool steady = less > 0 && less > kSteady * greater;
    state_.looks = steady ? state_.looks + 1 : 0;
    if (!steady) state_.variance = sum;
  }

  void Freeze() {
    std::vector<double> scales =
        MomentumScales(OnHost(member_.device, optimizer_.State()[0]), member_.segments);
    if (std::ranges::none_of(scales, [](double scale) { return scale > 0; })) return;
    state_.scales = std::move(scales);
    state_.since = optimizer_.steps();
    Restart();
    optimizer_.Freeze();
  }

  // At all looks in a row, of so many steps.
  bool IsOutOfDate() {
    const cuda::FactorBounds bounds;
    const auto stuck = std::ranges::count_if(state_.layers, [&](const LayerRatio& layer) {
      return layer.factor <= bounds.min || layer.factor >= bounds.max;
    });
    const bool most = 2 * static_cast<std::size_t>(stuck) > state_.layers.size();
    state_.looks = most ? state_.looks + 1 : 0;
    return state_.looks >= kLooks;
  }

  void Thaw() {
    optimizer_.Thaw();
    Restart();
    state_.begun = member_.learning_rate.progress();
  }

  void Restart() {
    state_.variance = 0;
    state_.looks = 0;
    state_.next_look = optimizer_.steps() + StepsBetweenLooks(moments_.beta2);
  }

  Member& member_;
  Optimizer& optimizer_;
  OneBitState& state_;
  const Optimizer::Moments moments_;
  const std::size_t members_;
};

// What is of signs alone.
void Leave(Optimizer& optimizer) {
  OneBitState& state = optimizer.one_bit();
  if (state.frozen) optimizer.Thaw();
  state = {.frozen_steps = state.frozen_steps};
}

}  // namespace

SharedMomentum FollowOneBit(Member& member, const policies::Plan& plan) {
  Optimizer& optimizer = member.optimizer;
  if (plan.encoding != policies::Encoding::kOneBit) {
    Leave(optimizer);
    return {};
  }
  TACTUS_CHECK(plan.synchronization == policies::Synchronization::kEveryStep);
  TACTUS_CHECK(plan.aggregation == policies::Aggregation::kAverage);
  TACTUS_CHECK(optimizer.moments().has_value() && !member.options.clip_norm.has_value());
  optimizer.FollowRatios();
  Phase(member, plan).Follow();
  const OneBitState& state = optimizer.one_bit();
  if (!state.frozen) return {};
  return {.first = optimizer.State()[0],
          .second = optimizer.State()[1],
          .scales = state.scales,
          .beta1 = optimizer.moments()->beta1,
          .since = state.since};
}

std::vector<double> MomentumScales(std::span<const float> momentum,
                                   const cuda::SegmentTable& segments) {
  std::vector<double> sizes;
  double sum = 0;
  double count = 0;
  for (const cuda::Segment& segment : segments) {
    const std::span<const float> part = momentum.subspan(segment.offset, segment.length);
    const double size =
        part.empty() ? 0
                     : std::sqrt(cuda::host::SquaredNorm(part) / static_cast<double>(part.size()));
    const bool counts = size > 0 && std::isfinite(size);
    sizes.push_back(counts ? size : 0);
    sum += sizes.back();
    count += counts ? 1 : 0;
  }
  for (double& size : sizes) {
    const auto scale = size > 0 ? sum / count / size : 0;
    // As float32 multiplies and divides by it.
    const bool usable = std::isnormal(static_cast<float>(scale));
    size = usable ? scale : 0;
  }
  return sizes;
}

}  // namespace tactus::engine
