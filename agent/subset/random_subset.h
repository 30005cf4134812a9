// A subset that is drawn: what any other one is to be better than.

#pragma once

#include <cstdint>

#include "agent/engine/samples/subset.h"

namespace tactus::subset {

// How many samples a subset has that is this part of all: rounded to the nearest, at least one.
//
// samples   [1]  >= 1
// fraction  [1]  in (0, 1]
std::uint64_t SizeOf(std::uint64_t samples, double fraction);

// `size` of the samples [0, samples), each as likely, all of weight 1: the `number`th draw (from 1)
// of a job with this seed. Its epoch is the caller's to say.
engine::Subset DrawSubset(std::uint64_t samples, std::uint64_t size, std::uint64_t seed,
                          std::uint64_t number);

}  // namespace tactus::subset
