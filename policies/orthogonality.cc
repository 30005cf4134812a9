#include "policies/orthogonality.h"

#include <algorithm>
#include <cmath>

namespace tactus::policies {
namespace {

double Within(double orthogonality, double contributors) {
  return std::isfinite(orthogonality) ? std::clamp(orthogonality, 1 / contributors, 1.0) : 1.0;
}

}  // namespace

double Orthogonality(const AdasumNorms& norms) {
  if (norms.contributors < 2) return 1;
  return Within(norms.combined_norm2 / norms.parts_norm2, norms.contributors);
}

double Orthogonality(const UpdateFacts& facts, double samples_squared) {
  if (facts.contributors < 2 || !Usable(facts)) return 1;
  const double mean_norm2 = facts.samples_gradient_norm2 / facts.samples;
  const double concentration = samples_squared / (facts.samples * facts.samples);
  const double cosine = (facts.gradient_norm2 / mean_norm2 - concentration) / (1 - concentration);
  return Within(1 - cosine * (1 - 1.0 / facts.contributors), facts.contributors);
}

}  // namespace tactus::policies
