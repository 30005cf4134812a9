// Training and validation parts of a data set.

#pragma once

#include <cstdint>
#include <memory>

#include "agent/data/dataset.h"

namespace tactus::data {

// Samples or bytes [first, first + size).
struct Range {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
};

// How many of `total` samples (or bytes) are for validation: fraction * total, rounded down.
//
// total     [1]  >= 1
// fraction  [1]  in [0, 0.9]
// Returns a count below total, so at least one is left for training.
std::uint64_t ValidationCount(std::uint64_t total, double fraction);

// Splits by sample: the last ValidationCount(size, fraction) samples are for validation. The parts
// share `dataset`, which lives as long as either.
Split SplitSamples(std::shared_ptr<const Dataset> dataset, double fraction);

}  // namespace tactus::data
