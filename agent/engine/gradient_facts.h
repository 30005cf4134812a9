// What a round that was combined tells of its gradients.

#pragma once

#include "agent/engine/combine/combination.h"
#include "agent/engine/round.h"
#include "policies/adascale.h"

namespace tactus::engine {

// How many gradients, each a sample of the noise, the round's is the mean of.
std::uint32_t ContributorsOf(const Round& round);

// Of the mean gradients of the members and of all, as the round's gradient_length and _share have
// it from what was combined; without samples where that tells nothing of their noise.
policies::UpdateFacts GradientFactsOf(const Round& round, const Combined& combined);

}  // namespace tactus::engine
