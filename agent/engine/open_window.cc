#include "agent/engine/open_window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/words.h"
#include "base/rng.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// Of all members' blocks together, padding included: what is broken into more is not worth it.
constexpr std::uint64_t kStretchesMax = std::uint64_t{1} << 16;

// What a member tells of its window, as words; all zero: it has none.
struct Told {
  std::uint64_t stretches = 0;  // of its block
  std::uint64_t id = 0;
  std::uint64_t samples = 0;  // that its replica's steps have used
  std::uint64_t batch_size = 0;
  // Equal where the id is, for those who have no window:
  std::uint64_t period = 0;
  std::uint64_t aggregation = 0;
  std::uint64_t rule = 0;
  std::uint64_t rate = 0;  // the bits of a double; likewise the next
  std::uint64_t gain = 0;
};

// The one list of what travels.
constexpr std::array kWordsOfTold = {&Told::stretches,  &Told::id,     &Told::samples,
                                     &Told::batch_size, &Told::period, &Told::aggregation,
                                     &Told::rule,       &Told::rate,   &Told::gain};

Told ToldOf(const OpenWindow& window) {
  return {.stretches = window.block.size(),
          .id = window.id,
          .samples = window.taken.replica_samples,
          .batch_size = window.batch_size,
          .period = window.period,
          .aggregation = static_cast<std::uint64_t>(window.taken.aggregation),
          .rule = static_cast<std::uint64_t>(window.taken.rule),
          .rate = std::bit_cast<std::uint64_t>(window.taken.rate.rate),
          .gain = std::bit_cast<std::uint64_t>(window.taken.rate.gain)};
}

// Each member's words, as many of each; by rank, one behind the other.
Completion Share(collective::Transport& transport, std::span<const std::uint64_t> own,
                 std::vector<std::uint64_t>& all) {
  const std::size_t words = own.size() * static_cast<std::size_t>(transport.size());
  const std::size_t mine = own.size() * static_cast<std::size_t>(transport.rank());
  std::vector<float> floats(kFloatsOfWord * words);
  const auto of = [&](std::size_t word) {
    return std::span(floats).subspan(kFloatsOfWord * word, kFloatsOfWord);
  };
  for (std::size_t i = 0; i < own.size(); ++i) PutWord(own[i], of(mine + i));
  const Completion completion = transport.StartAllReduceSum(floats)->Wait();
  if (completion.progress == Progress::kFailed) return completion;
  all.resize(words);
  for (std::size_t i = 0; i < words; ++i) all[i] = WordIn(of(i));
  return completion;
}

Completion ShareTold(collective::Transport& transport, const Told& own, std::vector<Told>& told) {
  std::vector<std::uint64_t> words;
  for (const auto word : kWordsOfTold) words.push_back(own.*word);
  std::vector<std::uint64_t> all;
  Completion completion = Share(transport, words, all);
  if (completion.progress == Progress::kFailed) return completion;
  told.resize(all.size() / words.size());
  auto next = all.begin();
  for (Told& each : told) {
    for (const auto word : kWordsOfTold) each.*word = *next++;
  }
  return completion;
}

std::uint64_t MostStretches(const std::vector<Told>& told) {
  return std::ranges::max_element(told, {}, &Told::stretches)->stretches;
}

// What of it is one window's, or nothing: they have none, not the same, or nothing in it.
std::optional<Told> CommonTo(const std::vector<Told>& told) {
  std::optional<Told> common;
  std::uint64_t samples = 0;
  for (const Told& each : told) {
    if (each.stretches == 0) continue;
    if (!common) common = each;
    if (each.id != common->id) return std::nullopt;
    samples += each.samples;
  }
  const bool sane = samples > 0 && MostStretches(told) <= kStretchesMax / told.size();
  return sane ? common : std::nullopt;
}

// Whether members of one replica, which are so many each, have taken unequal steps.
bool IsTorn(const std::vector<Told>& told, std::size_t members) {
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (told[rank].samples != told[rank - rank % members].samples) return true;
  }
  return false;
}

// Under what the group would go on with it; nothing: its own plan is of another kind. One replica,
// of so many members, combines with nobody, so any plan does.
std::optional<policies::Plan> PlanOf(const std::vector<Told>& told, const Told& common,
                                     const policies::Plan& of_group, std::size_t members) {
  constexpr auto kAggregationLast = static_cast<std::uint64_t>(policies::Aggregation::kAdasum);
  constexpr auto kRuleLast = static_cast<std::uint64_t>(policies::LearningRateRule::kAdascale);
  if (common.aggregation > kAggregationLast || common.rule > kRuleLast) return std::nullopt;
  if (common.period > policies::kPeriodMax) return std::nullopt;
  policies::Plan plan{.version = of_group.version,
                      .synchronization = policies::Synchronization::kPeriodic,
                      .period = static_cast<std::uint32_t>(common.period),
                      .aggregation = static_cast<policies::Aggregation>(common.aggregation),
                      .learning_rate_rule = static_cast<policies::LearningRateRule>(common.rule),
                      .encoding = of_group.encoding};
  for (const Told& each : told) {
    const std::uint64_t size = each.stretches > 0 ? each.batch_size : 0;
    if (size > policies::kRoundSamplesMax || (each.stretches > 0 && size == 0)) return std::nullopt;
    plan.batch_sizes.push_back(static_cast<std::uint32_t>(size));
  }
  const bool alike = policies::IsPeriodic(of_group) && of_group.aggregation == plan.aggregation;
  if (!alike && told.size() > members) return std::nullopt;
  if (plan.encoding == policies::Encoding::kOneBit) return std::nullopt;  // not of changes
  const bool fits = policies::Fits(plan, static_cast<std::uint32_t>(told.size()));
  return fits ? std::optional(std::move(plan)) : std::nullopt;
}

// members: that have a block together.
Completion ShareBlocks(collective::Transport& transport, const Block& own, std::size_t members,
                       const std::vector<Told>& told, std::vector<Block>& blocks) {
  const std::size_t words = 2 * MostStretches(told);
  std::vector<std::uint64_t> edges;
  for (const Stretch& stretch : own) {
    edges.push_back(stretch.begin);
    edges.push_back(stretch.end);
  }
  edges.resize(words);
  std::vector<std::uint64_t> all;
  Completion completion = Share(transport, edges, all);
  if (completion.progress == Progress::kFailed) return completion;
  for (std::size_t rank = 0; rank < told.size(); rank += members) {
    Block& block = blocks.emplace_back();
    for (std::size_t i = 0; i < told[rank].stretches; ++i) {
      const std::size_t at = words * rank + 2 * i;
      block.push_back({.begin = all[at], .end = all[at + 1]});
    }
  }
  return completion;
}

}  // namespace

std::uint64_t IdOf(const Member& member, const policies::Plan& plan,
                   const policies::LearningRate::Rate& rate) {
  std::uint64_t id = member.ledger.RoundId();
  const auto mix = [&id](std::uint64_t word) { id = Mix64((id ^ word) + 0x9e3779b97f4a7c15ULL); };
  mix(member.rounds);
  mix(plan.period);
  mix(static_cast<std::uint64_t>(plan.aggregation));
  mix(static_cast<std::uint64_t>(plan.learning_rate_rule));
  mix(std::bit_cast<std::uint64_t>(rate.rate));
  mix(std::bit_cast<std::uint64_t>(rate.gain));
  for (const std::uint32_t size : plan.batch_sizes) mix(size);
  return id;
}

Completion AgreeOnWindow(Member& member, Group& group, bool behind,
                         std::optional<ResumedWindow>& resumed) {
  const OpenWindow* const own = !behind && member.window ? &*member.window : nullptr;
  std::vector<Told> told;
  Completion completion =
      ShareTold(group.transport(), own != nullptr ? ToldOf(*own) : Told{}, told);
  if (completion.progress == Progress::kFailed) return completion;
  const std::size_t members = member.options.replica_members;
  if (IsTorn(told, members)) {
    member.LetGoOfSteps();
    return completion;
  }
  const std::optional<Told> common = CommonTo(told);
  std::optional<policies::Plan> plan;
  if (common) plan = PlanOf(told, *common, group.plan(), members);
  if (!plan) {
    if (!behind) member.LetGoOfWindow();
    return completion;
  }
  ResumedWindow window{.plan = *std::move(plan),
                       .rate = {.rate = std::bit_cast<double>(common->rate),
                                .gain = std::bit_cast<double>(common->gain)}};
  completion = ShareBlocks(group.transport(), own != nullptr ? own->block : Block(), members, told,
                           window.blocks);
  if (completion.progress != Progress::kFailed) resumed = std::move(window);
  return completion;
}

}  // namespace tactus::engine
