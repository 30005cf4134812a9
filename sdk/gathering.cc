#include "sdk/gathering.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "agent/engine/words.h"

namespace tactus::sdk {
namespace {

constexpr std::size_t kFloats = engine::kFloatsOfWord;

// Each member's words, or zeros, to all. [words * places]
absl::StatusOr<std::vector<std::uint64_t>> Exchange(collective::Transport& transport,
                                                    std::size_t places, std::size_t place,
                                                    std::span<const std::uint64_t> own) {
  std::vector<float> floats(places * own.size() * kFloats);
  const auto at = [&floats](std::size_t word) {
    return std::span(floats).subspan(word * kFloats, kFloats);
  };
  if (place < places) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      engine::PutWord(own[i], at(place * own.size() + i));
    }
  }
  const collective::Completion done = transport.StartAllReduceSum(floats)->Wait();
  if (done.progress != collective::Progress::kDone) return absl::UnavailableError(done.reason);
  std::vector<std::uint64_t> words(places * own.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = engine::WordIn(at(i));
  return words;
}

}  // namespace

absl::StatusOr<Turn> TakeTurn(collective::Transport& transport, const Offer& own,
                              Gathered& gathered) {
  const auto size = static_cast<std::size_t>(transport.size());
  const auto rank = static_cast<std::size_t>(transport.rank());
  const std::uint64_t told[] = {own.key, own.values.size()};
  const auto offers = Exchange(transport, size, rank, told);
  if (!offers.ok()) return offers.status();
  const auto offer = [&offers](std::size_t of) {
    return std::pair((*offers)[2 * of], (*offers)[2 * of + 1]);
  };
  std::optional<std::pair<std::uint64_t, std::uint64_t>> first;
  for (std::size_t of = 0; of < size; ++of) {
    if (offer(of).second > 0 && (!first || offer(of) < *first)) first = offer(of);
  }
  if (!first) return Turn::kOver;
  std::vector<std::size_t> ranks;
  for (std::size_t of = 0; of < size; ++of) {
    if (offer(of) == *first) ranks.push_back(of);
  }
  const auto found = std::ranges::find(ranks, rank);
  const auto place = static_cast<std::size_t>(found - ranks.begin());

  std::vector<std::uint64_t> values(first->second);
  if (found != ranks.end()) {
    std::ranges::transform(own.values, values.begin(),
                           [](double value) { return std::bit_cast<std::uint64_t>(value); });
  }
  const auto all = Exchange(transport, ranks.size(), place, values);
  if (!all.ok()) return all.status();
  if (found == ranks.end()) return Turn::kOthers;
  gathered = {.members = ranks.size(), .place = place};
  for (const std::uint64_t word : *all) gathered.values.push_back(std::bit_cast<double>(word));
  return Turn::kOwn;
}

}  // namespace tactus::sdk
