#include "agent/engine/combine/residuals.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Vectors are padded to a multiple of that.
bool OfVector(const std::vector<float>& values) { return values.size() >= cuda::kSegmentAlignment; }

void Add(const Residuals& from, Residuals& into) {
  for (const auto& [name, values] : from) {
    std::vector<float>& sum = into[name];
    if (sum.empty()) sum.resize(values.size());
    TACTUS_CHECK(sum.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum[i] = OfVector(values) ? sum[i] + values[i] : std::max(sum[i], values[i]);
    }
  }
}

Residuals ShareOf(const ResidualParts& parts, std::size_t rank, std::size_t size) {
  Residuals share;
  if (rank < parts.members) share = parts.of(rank);
  for (std::size_t part = rank + size; part < parts.members; part += size) {
    Add(parts.of(part), share);
  }
  return share;
}

}  // namespace tactus::engine
