#include "cuda/ops/rows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"

namespace tactus::cuda::host {

void AddRows(std::span<const double> lower, std::span<const double> higher, std::span<double> out) {
  TACTUS_CHECK(lower.size() == out.size() && higher.size() == out.size());
  std::ranges::transform(lower, higher, out.begin(), std::plus<>());
}

void Widen(std::span<const float> from, std::span<double> to) {
  TACTUS_CHECK(from.size() == to.size());
  std::ranges::copy(from, to.begin());
}

void Narrow(std::span<const double> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  std::ranges::transform(from, to.begin(), [](double value) { return static_cast<float>(value); });
}

void CountNonFinite(std::span<const double> values, std::span<double> count) {
  TACTUS_CHECK(count.size() == 1);
  const auto nonfinite = [](double value) { return !std::isfinite(value); };
  count.front() += static_cast<double>(std::ranges::count_if(values, nonfinite));
}

}  // namespace tactus::cuda::host
