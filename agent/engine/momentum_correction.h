// Which jobs' momentum, and in which rounds, encodings that leave something out take upon
// themselves (combine/residual_encoding.h).

#pragma once

#include "agent/engine/combine/carried_momentum.h"
#include "agent/engine/engine_options.h"
#include "policies/plan.h"

namespace tactus::engine {

struct Member;

// Sgd's, where the whole of its state is each member's own and its step is linear in what travels:
// not where gradients are cut to a norm, which is that of the sum, or where members have parts of
// the model, of which several hold copies that travel beside what is encoded.
bool CarriesMomentum(const EngineOptions& options);

// What encodings are to know of the round that is about to open under `plan`, but for its samples.
// None in rounds that are not one step of each member, all by one sum.
CarriedMomentum CarriedBy(Member& member, const policies::Plan& plan);

}  // namespace tactus::engine
