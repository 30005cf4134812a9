#include "agent/engine/comparison.h"

#include <algorithm>

namespace tactus::engine {
namespace {

// A float32 holds whole numbers of 24 bits, and a sum of one of them and zeros is exact.
constexpr std::size_t kWords = 4;
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

Comparison JudgeHashes(std::span<const std::uint64_t> hashes) {
  Comparison comparison;
  std::ptrdiff_t most = 0;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    const std::ptrdiff_t count = std::ranges::count(hashes, hashes[rank]);
    if (count <= most) continue;
    most = count;
    comparison.right = rank;
  }
  for (std::uint32_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[comparison.right]) comparison.wrong.push_back(rank);
  }
  comparison.majority = 2 * comparison.wrong.size() < hashes.size();
  return comparison;
}

collective::Completion Exchange(collective::Transport& transport, std::uint64_t own,
                                std::vector<std::uint64_t>& hashes) {
  const auto size = static_cast<std::size_t>(transport.size());
  const std::size_t mine = kWords * static_cast<std::size_t>(transport.rank());
  std::vector<float> words(kWords * size);
  for (std::size_t i = 0; i < kWords; ++i) {
    words[mine + i] = static_cast<float>(own >> (kWordBits * i) & ((1u << kWordBits) - 1));
  }
  const collective::Completion completion = transport.StartAllReduceSum(words)->Wait();
  hashes.assign(size, 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    hashes[i / kWords] |= static_cast<std::uint64_t>(words[i]) << (kWordBits * (i % kWords));
  }
  return completion;
}

}  // namespace tactus::engine
