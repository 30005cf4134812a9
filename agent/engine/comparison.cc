#include "agent/engine/comparison.h"

#include <algorithm>

#include "agent/engine/words.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kFloats = kFloatsOfWord + 1;  // of a member; the last one: they are finite

}  // namespace

bool Comparisons::Due(Duration trained) const {
  const Duration apart =
      std::max(options_.least_between, Duration(Seconds(ToSeconds(cost_) / options_.share)));
  return options_.on && trained - last_ >= apart;
}

void Comparisons::Take(Duration trained, Duration cost) {
  last_ = trained;
  cost_ = cost;
}

Comparison JudgeHashes(std::span<const HashedParameters> hashes) {
  Comparison comparison;
  std::ptrdiff_t most = 0;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    const std::ptrdiff_t count = std::ranges::count(hashes, hashes[rank]);
    const bool better = count == most && hashes[rank].finite && !hashes[comparison.right].finite;
    if (count <= most && !better) continue;
    most = count;
    comparison.right = rank;
  }
  for (std::uint32_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[comparison.right]) comparison.wrong.push_back(rank);
  }
  comparison.majority = 2 * comparison.wrong.size() < hashes.size();
  return comparison;
}

collective::Completion Exchange(collective::Transport& transport, const HashedParameters& own,
                                std::vector<HashedParameters>& hashes) {
  const auto size = static_cast<std::size_t>(transport.size());
  std::vector<float> floats(kFloats * size);
  const auto of = [&](std::size_t rank) {
    return std::span(floats).subspan(kFloats * rank, kFloats);
  };
  const auto mine = of(static_cast<std::size_t>(transport.rank()));
  PutWord(own.hash, mine.first(kFloatsOfWord));
  mine.back() = own.finite ? 1 : 0;
  const collective::Completion completion = transport.StartAllReduceSum(floats)->Wait();
  hashes.assign(size, {});
  for (std::size_t rank = 0; rank < size; ++rank) {
    hashes[rank].hash = WordIn(of(rank).first(kFloatsOfWord));
    hashes[rank].finite = of(rank).back() > 0;
  }
  return completion;
}

}  // namespace tactus::engine
