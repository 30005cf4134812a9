#include "agent/engine/momentum_correction.h"

#include <variant>

#include "agent/engine/member.h"

namespace tactus::engine {

bool CarriesMomentum(const EngineOptions& options) {
  const auto* const sgd = std::get_if<SgdOptions>(&options.optimizer);
  return sgd != nullptr && sgd->momentum > 0 && !options.clip_norm && !options.shards.on() &&
         options.replica_members == 1;
}

CarriedMomentum CarriedBy(Member& member, const policies::Plan& plan) {
  const bool steps = plan.synchronization == policies::Synchronization::kEveryStep &&
                     plan.aggregation == policies::Aggregation::kAverage;
  if (!steps || !CarriesMomentum(member.options)) return {};
  const auto& sgd = std::get<SgdOptions>(member.options.optimizer);
  return {.momentum = member.optimizer.State().front(),
          .parameters = member.parameters,
          .beta = sgd.momentum,
          .nesterov = sgd.nesterov,
          .weight_decay = sgd.weight_decay};
}

}  // namespace tactus::engine
