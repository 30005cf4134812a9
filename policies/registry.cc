// The batch policies by the names that a job file uses.

#include "policies/batch_policy.h"
#include "policies/fixed_batch.h"
#include "policies/proportional_batch.h"

namespace tactus::policies {

std::unique_ptr<BatchPolicy> MakeBatchPolicy(std::string_view name, const BatchOptions& options) {
  if (name == "fixed") return std::make_unique<FixedBatch>(options);
  if (name == "proportional") return std::make_unique<ProportionalBatch>(options);
  return nullptr;
}

std::vector<std::string> BatchPolicyNames() { return {"fixed", "proportional"}; }

}  // namespace tactus::policies
