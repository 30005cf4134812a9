// Initial weights: from a seed to the same bytes on every machine.

#pragma once

#include <span>

#include "agent/model/blueprint.h"
#include "base/rng.h"

namespace tactus::model {

// Standard normal numbers by the polar method. The logarithm is computed with additions, products
// and quotients alone (IEEE rounds these alike everywhere; a libm's log differs between
// processors).
//
// Source: design; the polar method is Marsaglia's (memory, unverified).
class NormalNumbers {
 public:
  explicit NormalNumbers(Rng rng) : rng_(rng) {}

  double Next();

 private:
  Rng rng_;
  double spare_ = 0;  // the second number of a pair
  bool has_spare_ = false;
};

// Fills `values` as `tensor` says, drawing from `rng`.
void FillInitial(const TensorBlueprint& tensor, Rng rng, std::span<float> values);

}  // namespace tactus::model
