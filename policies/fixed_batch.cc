#include "policies/fixed_batch.h"

#include <algorithm>

namespace tactus::policies {

BatchDecision FixedBatch::Start(const StartingGroup& group) {
  const std::uint32_t size =
      std::clamp(options_.per_worker, options_.batch_min, options_.batch_max);
  return {.batch_sizes = std::vector<std::uint32_t>(group.members, size),
          .reason = "fixed: " + std::to_string(size) + " samples for every worker"};
}

void FixedBatch::Observe(const Report&) {}

BatchDecision FixedBatch::Decide(const std::vector<std::uint32_t>&) {
  return {.batch_sizes = {}, .reason = "fixed: batch sizes never change"};
}

}  // namespace tactus::policies
