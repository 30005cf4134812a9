#include "agent/subset/quotas.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/check.h"

namespace tactus::subset {
namespace {

using Wide = unsigned __int128;

// The group that is furthest below its share and has room, or above it and has more than one: the
// next to get or to give one.
std::size_t FurthestBelow(std::span<const std::uint64_t> sizes,
                          const std::vector<std::uint64_t>& quotas, Wide budget, Wide total) {
  std::size_t best = sizes.size();
  __int128 most = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (quotas[i] >= sizes[i]) continue;
    const auto below =
        static_cast<__int128>(budget * sizes[i]) - static_cast<__int128>(total * quotas[i]);
    if (best == sizes.size() || below > most) best = i, most = below;
  }
  return best;
}

std::size_t FurthestAbove(std::span<const std::uint64_t> sizes,
                          const std::vector<std::uint64_t>& quotas, Wide budget, Wide total) {
  std::size_t best = sizes.size();
  __int128 most = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (quotas[i] <= 1) continue;
    const auto above =
        static_cast<__int128>(total * quotas[i]) - static_cast<__int128>(budget * sizes[i]);
    if (best == sizes.size() || above > most) best = i, most = above;
  }
  return best;
}

}  // namespace

std::vector<std::uint64_t> Quotas(std::span<const std::uint64_t> sizes, std::uint64_t budget) {
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  const auto groups = static_cast<std::uint64_t>(
      std::ranges::count_if(sizes, [](std::uint64_t size) { return size > 0; }));
  TACTUS_CHECK(budget >= groups && budget <= total);
  std::vector<std::uint64_t> quotas;
  std::uint64_t given = 0;
  for (const std::uint64_t size : sizes) {
    const auto share = total == 0 ? 0 : static_cast<std::uint64_t>(Wide{budget} * size / total);
    quotas.push_back(size == 0 ? 0 : std::max<std::uint64_t>(1, share));
    given += quotas.back();
  }
  // Down by less than one a group; up only by those that were raised to 1.
  for (; given < budget; ++given) ++quotas[FurthestBelow(sizes, quotas, budget, total)];
  for (; given > budget; --given) --quotas[FurthestAbove(sizes, quotas, budget, total)];
  return quotas;
}

}  // namespace tactus::subset
