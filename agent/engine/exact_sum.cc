#include "agent/engine/exact_sum.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/engine/words.h"

namespace tactus::engine {

collective::Completion SumExactly(collective::Transport& group, double own, double& sum) {
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<float> floats(kFloatsOfWord * size);
  const auto of = [&](std::size_t rank) {
    return std::span(floats).subspan(kFloatsOfWord * rank, kFloatsOfWord);
  };
  PutWord(std::bit_cast<std::uint64_t>(own), of(static_cast<std::size_t>(group.rank())));
  const collective::Completion completion = group.StartAllReduceSum(floats)->Wait();
  sum = 0;
  for (std::size_t rank = 0; rank < size; ++rank) sum += std::bit_cast<double>(WordIn(of(rank)));
  return completion;
}

}  // namespace tactus::engine
