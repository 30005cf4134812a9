#include "agent/engine/comparison.h"

#include <algorithm>

namespace tactus::engine {
namespace {

// A float32 holds whole numbers of 24 bits, and a sum of one of them and zeros is exact.
constexpr std::size_t kHashWords = 4;
constexpr std::size_t kWords = kHashWords + 1;  // the last one: they are finite
constexpr unsigned kWordBits = 16;

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
  const std::size_t mine = kWords * static_cast<std::size_t>(transport.rank());
  std::vector<float> words(kWords * size);
  for (std::size_t i = 0; i < kHashWords; ++i) {
    words[mine + i] = static_cast<float>(own.hash >> (kWordBits * i) & ((1u << kWordBits) - 1));
  }
  words[mine + kHashWords] = own.finite ? 1 : 0;
  const collective::Completion completion = transport.StartAllReduceSum(words)->Wait();
  hashes.assign(size, {});
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::span<const float> told = std::span(words).subspan(kWords * rank, kWords);
    for (std::size_t i = 0; i < kHashWords; ++i) {
      hashes[rank].hash |= static_cast<std::uint64_t>(told[i]) << (kWordBits * i);
    }
    hashes[rank].finite = told[kHashWords] > 0;
  }
  return completion;
}

}  // namespace tactus::engine
