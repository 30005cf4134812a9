#include "agent/engine/take_over.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "agent/engine/engine_state.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/open_window.h"
#include "agent/engine/sharded_step.h"
#include "agent/engine/state_counters.h"
#include "agent/engine/words.h"
#include "base/check.h"
#include "base/time.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// ---- The numbers of a state, as what collectives carry: their bits as float32, two a number.

std::uint64_t WordOf(bool value) { return value ? 1 : 0; }
std::uint64_t WordOf(std::uint32_t value) { return value; }
std::uint64_t WordOf(std::uint64_t value) { return value; }
std::uint64_t WordOf(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t WordOf(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t WordOf(SubsetKind value) { return static_cast<std::uint64_t>(value); }
std::uint64_t WordOf(Duration value) { return static_cast<std::uint64_t>(value.count()); }

void FromWord(std::uint64_t word, bool& value) { value = word != 0; }
void FromWord(std::uint64_t word, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(word);
}
void FromWord(std::uint64_t word, std::uint64_t& value) { value = word; }
void FromWord(std::uint64_t word, double& value) { value = std::bit_cast<double>(word); }
void FromWord(std::uint64_t word, float& value) {
  value = std::bit_cast<float>(static_cast<std::uint32_t>(word));
}
void FromWord(std::uint64_t word, SubsetKind& value) { value = static_cast<SubsetKind>(word); }
void FromWord(std::uint64_t word, Duration& value) {
  value = Duration(static_cast<Duration::rep>(word));
}

// The one list of what travels so. The state's lists stand behind their lengths.
void VisitNumbers(auto& state, const auto& visit, const auto& visit_length) {
  VisitCounters(state, [&](const std::string&, auto& value) { visit(value); });
  visit_length(state.ledger.returned);
  for (auto& stretch : state.ledger.returned) {
    visit(stretch.begin);
    visit(stretch.end);
  }
  visit_length(state.ledger.subset.samples);
  for (auto& sample : state.ledger.subset.samples) visit(sample);
  visit_length(state.ledger.subset.weights);
  for (auto& weight : state.ledger.subset.weights) visit(weight);
  visit_length(state.losses);
  for (auto& round : state.losses) {
    visit(round.common.sum);
    visit(round.common.samples);
    visit(round.local.sum);
    visit(round.local.samples);
    visit(round.steps);
  }
  visit_length(state.one_bit.scales);
  for (auto& scale : state.one_bit.scales) visit(scale);
  visit_length(state.one_bit.layers);
  for (auto& layer : state.one_bit.layers) {
    visit(layer.sum);
    visit(layer.weight);
    visit(layer.factor);
  }
}

std::vector<float> NumbersOf(const EngineState& state) {
  std::vector<std::uint64_t> words;
  VisitNumbers(
      state, [&](const auto& value) { words.push_back(WordOf(value)); },
      [&](const auto& list) { words.push_back(list.size()); });
  std::vector<float> numbers(2 * words.size());
  std::memcpy(numbers.data(), words.data(), words.size() * sizeof(std::uint64_t));
  return numbers;
}

// False: they are not those of a state.
bool TakeNumbers(std::span<const float> numbers, EngineState& state) {
  std::size_t at = 0;
  bool whole = true;
  const auto next = [&]() -> std::uint64_t {
    std::uint64_t word = 0;
    whole = whole && 2 * (at + 1) <= numbers.size();
    if (whole) std::memcpy(&word, numbers.data() + 2 * at++, sizeof(word));
    return word;
  };
  VisitNumbers(
      state, [&](auto& value) { FromWord(next(), value); },
      [&](auto& list) {
        const std::uint64_t length = next();
        whole = whole && length <= numbers.size();
        list.resize(whole ? length : 0);
      });
  return whole && 2 * at == numbers.size();
}

// ---- The way of a state from one member to the others

class Handover {
 public:
  Handover(Member& member, Group& group, const Rejoining& rejoining)
      : member_(member), group_(group), rejoining_(rejoining) {
    const std::vector<std::uint64_t>& rounds = rejoining.rounds;
    TACTUS_CHECK(rounds.size() == group.size());
    std::vector<bool> wrong(rounds.size());
    for (const std::uint32_t rank : rejoining.wrong) wrong.at(rank) = true;
    const auto better = [&](std::size_t one, std::size_t other) {
      return wrong[one] != wrong[other] ? wrong[other] : rounds[one] > rounds[other];
    };
    for (std::size_t rank = 1; rank < rounds.size(); ++rank) {
      if (better(rank, donor_)) donor_ = rank;
    }
    gives_ = group.rank() == donor_;
    keeps_own_ = group.size() > 1 && group.synchronizer().traits().own_parameters;
    behind_ = better(donor_, group.rank());
    for (std::size_t rank = 0; rank < rounds.size(); ++rank) {
      any_behind_ = any_behind_ || better(donor_, rank);
    }
  }

  Completion Run() {
    const std::uint64_t told = rejoining_.rounds[group_.rank()];
    if (told != member_.rounds) {
      return Failed("the group was told of " + std::to_string(told) +
                    " rounds of this member, which has applied " + std::to_string(member_.rounds));
    }
    Completion completion;
    if (rejoining_.wrong.empty()) completion = AgreeOnWindow(member_, group_, behind_, resumed_);
    if (completion.progress == Progress::kDone) completion = Ask();
    if (completion.progress == Progress::kDone) completion = TakeState();
    if (completion.progress == Progress::kDone) {
      completion = TakeParameters();
    }
    if (completion.progress == Progress::kDone) Apply();
    group_.ClearVector();
    return completion;
  }

 private:
  static Completion Failed(std::string reason) {
    return {.progress = Progress::kFailed, .reason = std::move(reason)};
  }

  // What follows from all members, and the donor's numbers.
  Completion Ask() {
    if (gives_ && any_behind_) member_.CopyState(state_);
    if (gives_ && member_.shard) state_.optimizer.clear();
    if (gives_ && !any_behind_) member_.CopyNumbers(state_);
    std::vector<float> numbers = gives_ ? NumbersOf(state_) : std::vector<float>();
    std::array<float, 4 + kFloatsOfWord> sums = {
        member_.optimizers_differ ? 1.0f : 0.0f, rejoining_.lacks_best ? 1.0f : 0.0f,
        gives_ && !state_.block_momentum.empty() ? 1.0f : 0.0f,
        gives_ && !state_.fresh_moment.empty() ? 1.0f : 0.0f};
    const std::span<float> length = std::span(sums).last(kFloatsOfWord);
    PutWord(numbers.size(), length);  // of a subset there may be more than a float32 counts
    Completion asked = group_.transport().StartAllReduceSum(sums)->Wait();
    if (asked.progress == Progress::kFailed) return asked;
    optimizers_differ_ = sums[0] > 0;
    forgets_best_ = sums[1] > 0;
    has_block_momentum_ = sums[2] > 0;
    has_fresh_moment_ = sums[3] > 0;
    numbers.resize(WordIn(length));
    asked = group_.transport().StartBroadcast(numbers, static_cast<int>(donor_))->Wait();
    if (asked.progress == Progress::kFailed || gives_) return asked;
    if (behind_) member_.CopyState(state_);  // for the residuals, which stay
    if (member_.shard) state_.optimizer.clear();
    return TakeNumbers(numbers, state_) ? asked : Failed("the donor's state could not be read");
  }

  // What has the parameters' length, buffer by buffer through the one vector that there is.
  Completion TakeState() {
    Completion taken;
    if (!any_behind_) return taken;
    const std::vector<std::span<float>> buffers = member_.optimizer.State();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      taken = group_.Distribute(donor_, buffers[i]);
      if (taken.progress == Progress::kFailed) return taken;
      if (behind_) CopyOut(state_.optimizer[i]);
    }
    taken = TakeFlat(has_block_momentum_, member_.local_steps.Momentum(), state_.block_momentum);
    if (taken.progress == Progress::kFailed) return taken;
    taken = TakeFlat(has_fresh_moment_, member_.optimizer.FreshMoment(), state_.fresh_moment);
    if (taken.progress == Progress::kFailed) return taken;
    const std::string reason = behind_ ? member_.ReasonNotToTake(state_) : "";
    return reason.empty() ? TakeBuffers() : Failed("the donor's state does not fit: " + reason);
  }

  // Who is not behind goes on with its own, where members' are to differ.
  Completion TakeParameters() {
    equal_ = keeps_own_ && !behind_;
    if (keeps_own_)
      return any_behind_ ? group_.Distribute(donor_, member_.parameters) : Completion();
    const auto own = any_behind_ ? std::nullopt : rejoining_.own;
    return ShareParameters(member_, group_, donor_, own, equal_);
  }

  Completion TakeBuffers() {
    if (rejoining_.buffers.empty()) return {};
    buffers_.assign(rejoining_.buffers.begin(), rejoining_.buffers.end());
    return group_.transport().StartBroadcast(buffers_, static_cast<int>(donor_))->Wait();
  }

  // One of those that a donor need not have.
  Completion TakeFlat(bool has, std::span<const float> own, std::vector<float>& copy) {
    if (!has && behind_) copy.clear();
    if (!has) return {.progress = Progress::kDone};
    const Completion taken = group_.Distribute(donor_, own);
    if (taken.progress != Progress::kFailed && behind_) CopyOut(copy);
    return taken;
  }

  void CopyOut(std::vector<float>& copy) {
    copy.resize(group_.vector().size());
    member_.device.Copy(group_.vector(), copy);
  }

  void Apply() {
    if (member_.shard) ApplyShard();
    if (behind_) {
      member_.device.Synchronize();  // the copies to the host are whole then
      member_.Restore(state_);
      std::ranges::copy(buffers_, rejoining_.buffers.begin());
    } else if (any_behind_) {
      member_.encodings.BeginAnew();
    }
    if (!gives_ && !equal_) member_.device.Copy(group_.vector(), member_.parameters);
    member_.parameters_differ = keeps_own_;
    member_.optimizers_differ = optimizers_differ_;
    ValidationState validation = gives_ ? member_.validations.state() : state_.validation;
    if (!gives_ && !behind_) {
      TakeSubset();
      member_.steps = state_.steps;
    }
    if (forgets_best_ && validation.best_samples > 0) ForgetBest(validation);
    member_.validations.Restore(validation);
    if (resumed_) Resume();
  }

  // Who is one round behind, and was told of a step that others have taken, takes it, too. Of who
  // is wrong nobody knows whether its state is: where another one has it that one's counts.
  void ApplyShard() {
    OptimizerShard& shard = *member_.shard;
    const std::uint64_t rounds = member_.rounds;
    const std::uint64_t to = rejoining_.rounds[donor_];
    const bool wrong = std::ranges::count(rejoining_.wrong, group_.rank()) > 0;
    const bool known = shard.undecided && shard.undecided->rounds == rounds;
    if (to == rounds + 1 && known) {
      TakeUndecided(member_);
    } else if (to != rounds || (wrong && member_.options.shards.copies > 1)) {
      shard.Hold({});
    }
    shard.undecided.reset();
  }

  // A choice may have been over on some members only.
  void TakeSubset() {
    const Subset& theirs = state_.ledger.subset;
    const bool fits = ReasonAgainst(theirs, member_.ledger.epoch_size()).empty();
    if (fits && theirs != member_.ledger.subset()) member_.ledger.Choose(theirs);
  }

  // All have the same ledger now, and so find the same.
  void Resume() {
    if (!member_.ledger.MayResume(resumed_->blocks)) return member_.LetGoOfWindow();
    group_.Resume(*std::move(resumed_));
  }

  Member& member_;
  Group& group_;
  const Rejoining& rejoining_;
  std::size_t donor_ = 0;
  bool gives_ = false;       // this member is the donor
  bool behind_ = false;      // it takes all
  bool any_behind_ = false;  // somebody does
  bool keeps_own_ = false;   // members' parameters differ
  bool equal_ = false;       // this member has its parameters already
  bool optimizers_differ_ = false;
  bool forgets_best_ = false;
  bool has_block_momentum_ = false;       // the donor
  bool has_fresh_moment_ = false;         // likewise
  std::optional<ResumedWindow> resumed_;  // the first round goes on with it
  EngineState state_;                     // the donor's, as far as it has come
  std::vector<float> buffers_;            // likewise
};

}  // namespace

Completion ShareParameters(Member& member, Group& group, std::size_t donor,
                           const std::optional<HashedParameters>& own, bool& equal) {
  if (own) {
    std::vector<HashedParameters> hashes;
    const Completion told = Exchange(group.transport(), *own, hashes);
    if (told.progress == Progress::kFailed) return told;
    equal = std::ranges::count(hashes, *own) == std::ssize(hashes);
    if (equal) return told;
  }
  return group.Distribute(donor, member.parameters);
}

bool AreLevel(const std::vector<std::uint64_t>& rounds) {
  return std::ranges::adjacent_find(rounds, std::not_equal_to<>()) == rounds.end();
}

Completion TakeOver(Member& member, Group& group, const Rejoining& rejoining) {
  return Handover(member, group, rejoining).Run();
}

}  // namespace tactus::engine
