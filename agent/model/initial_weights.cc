#include "agent/model/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tactus::model {
namespace {

// Natural logarithm of x in (0, 1], to 1e-15 relative: ln(m * 2^e) with m in [0.5, 1), and
// ln m = 2 artanh((m - 1) / (m + 1)). |s| <= 1/3, so 18 terms leave s^37 / 37 < 1e-18.
double Logarithm(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  const double s = (mantissa - 1) / (mantissa + 1);
  double sum = 0;
  for (int k = 17; k >= 0; --k) sum = sum * (s * s) + 1.0 / (2 * k + 1);
  return 2 * s * sum + exponent * std::numbers::ln2;
}

}  // namespace

double NormalNumbers::Next() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double u = 0;
  double v = 0;
  double square = 0;
  do {
    u = 2 * rng_.Uniform() - 1;
    v = 2 * rng_.Uniform() - 1;
    square = u * u + v * v;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * Logarithm(square) / square);
  spare_ = v * factor;
  has_spare_ = true;
  return u * factor;
}

void FillInitial(const TensorBlueprint& tensor, Rng rng, std::span<float> values) {
  switch (tensor.initial) {
    case Initial::kZero:
      std::ranges::fill(values, 0.0F);
      return;
    case Initial::kOne:
      std::ranges::fill(values, 1.0F);
      return;
    case Initial::kUniform:
      for (float& value : values) {
        value = static_cast<float>((2 * rng.Uniform() - 1) * tensor.scale);
      }
      return;
    case Initial::kNormal:
      NormalNumbers numbers(rng);
      for (float& value : values) value = static_cast<float>(numbers.Next() * tensor.scale);
      return;
  }
}

}  // namespace tactus::model
