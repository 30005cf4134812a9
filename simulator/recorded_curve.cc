#include "simulator/recorded_curve.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

namespace tactus::simulator {
namespace {

PowerLaw LawOf(std::span<const LossPoint> points) {
  const std::size_t spare = points.size() - std::min(points.size(), kFitPointsMin);
  return FitPowerLaw(points.subspan(std::min(points.size() / 3, spare)));
}

}  // namespace

RecordedCurve::RecordedCurve(RecordedCurveOptions options)
    : options_(std::move(options)), law_(LawOf(options_.points)) {
  TACTUS_CHECK(!options_.points.empty());
  TACTUS_CHECK(std::ranges::is_sorted(options_.points, {}, &LossPoint::samples));
  // A model without parameters cannot be trained: here are some that nothing moves.
  segments_ = {{.name = "none",
                .length = cuda::kSegmentAlignment,
                .shape = {static_cast<std::int64_t>(cuda::kSegmentAlignment)}}};
}

void RecordedCurve::Initialise(std::uint64_t /*seed*/, std::span<float> parameters) const {
  std::ranges::fill(parameters, 0.0F);
}

double RecordedCurve::ForwardBackward(const engine::Batch& batch,
                                      std::span<const float> /*parameters*/,
                                      std::span<float> /*gradients*/) {
  samples_ += batch.indices.size();
  const auto seen = static_cast<double>(samples_);
  double loss = LossAt(seen);
  if (options_.noise && seen > options_.points.back().samples) {
    loss += law_.residual * Rng(Mix64(options_.seed) + batch.round).Normal();
  }
  return static_cast<double>(batch.indices.size()) * loss;
}

std::optional<double> RecordedCurve::Validate(std::span<const float> /*parameters*/) {
  return std::nullopt;
}

double RecordedCurve::LossAt(double samples) const {
  const std::vector<LossPoint>& points = options_.points;
  const auto next = std::ranges::upper_bound(points, samples, {}, &LossPoint::samples);
  if (next == points.begin()) return next->loss;
  const LossPoint& last = *(next - 1);
  if (next == points.end()) return samples > last.samples ? law_.At(samples) : last.loss;
  const double share = (samples - last.samples) / (next->samples - last.samples);
  return last.loss + share * (next->loss - last.loss);
}

}  // namespace tactus::simulator
