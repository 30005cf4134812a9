#include "agent/engine/shard_talks.h"

#include <algorithm>
#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/optimizer_shard.h"
#include "agent/engine/words.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

namespace {

// A member holds one stretch or two; after groups that were lost while they shared out, some more.
// What goes beyond it is not told, and so is not held.
constexpr std::size_t kStretchesMax = 8;
constexpr std::size_t kWordsOfMember = 2 + 2 * kStretchesMax;

// words [members * each] <- what each member put in.
Completion ExchangeWords(Group& group, std::span<const std::uint64_t> own,
                         std::vector<std::uint64_t>& words) {
  std::vector<float> floats(group.size() * own.size() * kFloatsOfWord);
  const auto at = [&](std::size_t word) {
    return std::span(floats).subspan(word * kFloatsOfWord, kFloatsOfWord);
  };
  for (std::size_t i = 0; i < own.size(); ++i) PutWord(own[i], at(group.rank() * own.size() + i));
  Completion completion = group.transport().StartAllReduceSum(floats)->Wait();
  words.resize(group.size() * own.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = WordIn(at(i));
  return completion;
}

// The last word: it has not been told yet what to hold.
std::vector<std::uint64_t> WordsOf(OptimizerShard& shard) {
  const std::vector<ShardStretch> held = shard.held();
  std::vector<std::uint64_t> words(kWordsOfMember);
  words.back() = shard.pieces().empty() ? 1 : 0;
  words[0] = std::min(held.size(), kStretchesMax);
  for (std::size_t i = 0; i < words[0]; ++i) {
    words[1 + 2 * i] = held[i].begin;
    words[2 + 2 * i] = held[i].end;
  }
  return words;
}

std::vector<ShardStretch> StretchesIn(std::span<const std::uint64_t> words, std::size_t length) {
  std::vector<ShardStretch> held;
  const std::size_t count = std::min<std::uint64_t>(words[0], kStretchesMax);
  for (std::size_t i = 0; i < count; ++i) {
    const ShardStretch stretch{.begin = words[1 + 2 * i], .end = words[2 + 2 * i]};
    if (stretch.begin <= stretch.end && stretch.end <= length) held.push_back(stretch);
  }
  return held;
}

std::string LostWords(const std::vector<ShardStretch>& lost, std::size_t length) {
  std::size_t elements = 0;
  for (const ShardStretch& stretch : lost) elements += stretch.length();
  return "the optimizer's state of " + std::to_string(elements) + " of " + std::to_string(length) +
         " parameters is held by no member of this group; the job goes back to its newest "
         "checkpoint, "
         "if it has retries left (optimizer.shard_copies: 2 keeps each part twice)";
}

// Fills new pieces from what is held here and from the others.
class Sharing {
 public:
  Sharing(Member& member, Group& group, const std::vector<ShardStretch>& wanted)
      : member_(member), group_(group), held_(member.shard->held()) {
    for (const ShardStretch& stretch : wanted) pieces_.push_back(member.shard->MakePiece(stretch));
  }

  Completion Run(const std::vector<ShardMove>& moves) {
    Completion completion;
    for (std::size_t buffer = 0; buffer < member_.shard->buffers(); ++buffer) {
      TakeOwn(buffer);
      for (const ShardMove& move : moves) {
        completion = Carry(buffer, move);
        if (completion.progress == Progress::kFailed) return completion;
      }
    }
    // Who drops what another one may not have got yet would lose it. This member has all that it
    // wants: where it does not learn whether the others do, it keeps what it held, too.
    completion = group_.transport().StartBarrier()->Wait();
    if (completion.progress == Progress::kFailed) KeepFormer();
    member_.shard->Hold(std::move(pieces_));
    return completion;
  }

 private:
  void TakeOwn(std::size_t buffer) {
    for (ShardPiece& piece : pieces_) {
      for (const ShardStretch& held : held_) {
        const ShardStretch common{.begin = std::max(held.begin, piece.stretch.begin),
                                  .end = std::min(held.end, piece.stretch.end)};
        if (common.begin >= common.end) continue;
        member_.shard->Read(buffer, common, PartOf(piece, buffer, common));
      }
    }
  }

  Completion Carry(std::size_t buffer, const ShardMove& move) {
    const ShardStretch& stretch = move.stretch;
    const std::span<float> carried = group_.vector().subspan(stretch.begin, stretch.length());
    if (group_.rank() == move.source) member_.shard->Read(buffer, stretch, carried);
    Completion completion =
        group_.transport().StartBroadcast(carried, static_cast<int>(move.source))->Wait();
    if (completion.progress == Progress::kFailed) return completion;
    for (ShardPiece& piece : pieces_) {
      const bool wants = piece.stretch.begin <= stretch.begin && stretch.end <= piece.stretch.end;
      if (wants) member_.device.Copy(carried, PartOf(piece, buffer, stretch));
    }
    return completion;
  }

  static std::span<float> PartOf(ShardPiece& piece, std::size_t buffer,
                                 const ShardStretch& stretch) {
    return piece.buffers[buffer].span().subspan(stretch.begin - piece.stretch.begin,
                                                stretch.length());
  }

  void KeepFormer() {
    for (const ShardStretch& stretch : held_) {
      const bool covered = std::ranges::any_of(pieces_, [&](const ShardPiece& piece) {
        return piece.stretch.begin <= stretch.begin && stretch.end <= piece.stretch.end;
      });
      if (covered) continue;
      pieces_.push_back(member_.shard->MakePiece(stretch));
      for (std::size_t i = 0; i < member_.shard->buffers(); ++i) {
        member_.shard->Read(i, stretch, pieces_.back().buffers[i].span());
      }
    }
  }

  Member& member_;
  Group& group_;
  const std::vector<ShardStretch> held_;
  std::vector<ShardPiece> pieces_;
};

}  // namespace

Completion ExchangeWeights(Group& group, std::uint64_t own, std::vector<std::uint64_t>& weights) {
  Completion completion = ExchangeWords(group, std::span(&own, 1), weights);
  const bool all_known =
      std::ranges::all_of(weights, [](std::uint64_t weight) { return weight > 0; });
  if (!all_known) std::ranges::fill(weights, 1);
  return completion;
}

Completion ShareOut(Member& member, Group& group, std::span<const std::uint64_t> weights,
                    std::string& lost) {
  const std::size_t length = member.parameters.size();
  std::vector<std::uint64_t> words;
  Completion completion = ExchangeWords(group, WordsOf(*member.shard), words);
  if (completion.progress == Progress::kFailed) return completion;
  std::vector<std::vector<ShardStretch>> held;
  bool all_told = true;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const auto of_member = std::span(words).subspan(rank * kWordsOfMember, kWordsOfMember);
    held.push_back(StretchesIn(of_member, length));
    all_told = all_told && of_member.back() == 0;
  }
  std::vector<ShardStretch> own = CutByWeights(length, weights);
  const std::vector<std::vector<ShardStretch>> wanted =
      HoldingsOf(own, member.options.shards.copies);
  const ShardMoves plan = PlanMoves(held, wanted);
  if (!plan.lost.empty() && member.shard->buffers() > 0) {
    lost = LostWords(plan.lost, length);
    return completion;
  }
  group.SetShards(std::move(own));
  if (all_told && held == wanted) return completion;
  completion = Sharing(member, group, wanted[group.rank()]).Run(plan.moves);
  group.ClearVector();
  return completion;
}

Completion GatherState(Member& member, Group& group, std::vector<std::vector<float>>& state) {
  const bool gathers = group.rank() == 0;
  std::vector<std::vector<float>> whole(gathers ? member.shard->buffers() : 0);
  Completion completion;
  for (std::size_t buffer = 0; buffer < member.shard->buffers(); ++buffer) {
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      const ShardStretch& stretch = group.shards()[rank];
      if (stretch.length() == 0) continue;
      const std::span<float> part = group.vector().subspan(stretch.begin, stretch.length());
      if (rank == group.rank()) member.shard->Read(buffer, stretch, part);
      if (group.size() == 1) continue;
      completion = group.transport().StartBroadcast(part, static_cast<int>(rank))->Wait();
      if (completion.progress == Progress::kFailed) return completion;
    }
    if (!gathers) continue;
    whole[buffer].resize(group.vector().size());
    member.device.Copy(group.vector(), whole[buffer]);
    member.device.Synchronize();
  }
  group.ClearVector();
  state = std::move(whole);
  return completion;
}

}  // namespace tactus::engine
