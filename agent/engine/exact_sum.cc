#include "agent/engine/exact_sum.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/engine/words.h"

namespace tactus::engine {

collective::Completion SumExactly(collective::Transport& group, std::span<double> sums) {
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<float> floats(kFloatsOfWord * sums.size() * size);
  const auto of = [&](std::size_t rank, std::size_t i) {
    return std::span(floats).subspan(kFloatsOfWord * (sums.size() * rank + i), kFloatsOfWord);
  };
  const auto own = static_cast<std::size_t>(group.rank());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    PutWord(std::bit_cast<std::uint64_t>(sums[i]), of(own, i));
  }
  const collective::Completion completion = group.StartAllReduceSum(floats)->Wait();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = 0;
    for (std::size_t rank = 0; rank < size; ++rank) {
      sums[i] += std::bit_cast<double>(WordIn(of(rank, i)));
    }
  }
  return completion;
}

}  // namespace tactus::engine
