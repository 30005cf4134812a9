#include "agent/worker/parameter_hash.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/ops/vector.h"

namespace tactus::worker {
namespace {

// FNV-1a.
constexpr std::uint64_t kBasis = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kPrime = 0x100000001b3ULL;

}  // namespace

engine::HashedParameters HashOf(std::span<const float> parameters) {
  std::uint64_t hash = kBasis;
  for (const std::byte byte : std::as_bytes(parameters)) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * kPrime;
  }
  return {.hash = hash, .finite = std::isfinite(cuda::host::SquaredNorm(parameters))};
}

engine::HashedParameters HashOfAll(std::span<const engine::HashedParameters> parts) {
  engine::HashedParameters all{.hash = kBasis, .finite = true};
  for (const engine::HashedParameters& part : parts) {
    all.hash = (all.hash ^ part.hash) * kPrime;
    all.finite = all.finite && part.finite;
  }
  return all;
}

}  // namespace tactus::worker
