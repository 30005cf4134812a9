#include "agent/engine/sharded_step.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/optimizer_shard.h"
#include "base/check.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

namespace {

// What members tell of at a time: with it all that this needs beside the state is a few MiB. A
// multiple of kShardGrain.
constexpr std::size_t kChunk = std::size_t{1} << 18;

std::span<float> StateOf(ShardPiece& piece, std::size_t buffer) {
  return buffer < piece.buffers.size() ? piece.buffers[buffer].span() : std::span<float>();
}

}  // namespace

ShardStretch ShardedStep::ChunkOf(const ShardStretch& stretch, std::size_t turn) const {
  const std::size_t begin = std::min(stretch.end, stretch.begin + turn * kChunk);
  return {.begin = begin, .end = std::min(stretch.end, begin + kChunk)};
}

Completion ShardedStep::Share(const StepScale& scale) {
  TACTUS_CHECK(scale.gate.empty());
  scale_ = scale;
  std::size_t longest = 0;
  for (const ShardStretch& stretch : group_.shards()) longest = std::max(longest, stretch.length());
  const std::size_t chunk = std::min(longest, kChunk);
  if (parameters_.size() < chunk) {
    gradient_ = member_.device.Allocate(chunk);
    parameters_ = member_.device.Allocate(chunk);
    state_.clear();
    for (std::size_t i = 0; i < member_.shard->buffers(); ++i) {
      state_.push_back(member_.device.Allocate(chunk));
    }
  }
  KeepGradients();
  Completion completion;
  if (group_.size() == 1) return completion;
  const std::size_t turns = (longest + kChunk - 1) / kChunk;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    completion = ShareTurn(turn);
    if (completion.progress != Progress::kFailed) continue;
    KeepUndecided();
    return completion;
  }
  return completion;
}

// A chunk of each member's, all under way at once.
Completion ShardedStep::ShareTurn(std::size_t turn) {
  const std::span<float> vector = group_.vector();
  const ShardStretch own = ChunkOf(group_.shards()[group_.rank()], turn);
  const std::span<float> own_chunk = vector.subspan(own.begin, own.length());
  const std::span<float> gradient = gradient_.span().first(own.length());
  member_.device.Copy(own_chunk, gradient);
  ComputeOwn(own_chunk, own);
  std::vector<std::unique_ptr<collective::Collective>> under_way;
  for (std::size_t rank = 0; rank < group_.size(); ++rank) {
    const ShardStretch chunk = ChunkOf(group_.shards()[rank], turn);
    if (chunk.length() == 0) continue;
    under_way.push_back(group_.transport().StartBroadcast(
        vector.subspan(chunk.begin, chunk.length()), static_cast<int>(rank)));
  }
  Completion all;
  for (const auto& each : under_way) {
    Completion completion = each->Wait();
    completion.at = std::max(completion.at, all.at);
    if (all.progress != Progress::kFailed) all = std::move(completion);
  }
  under_way.clear();
  member_.device.Copy(gradient, own_chunk);
  return all;
}

// chunk <- what becomes of the parameters; its gradient is in gradient_.
void ShardedStep::ComputeOwn(std::span<float> chunk, const ShardStretch& stretch) {
  if (stretch.length() == 0) return;
  member_.device.Copy(member_.parameters.subspan(stretch.begin, stretch.length()), chunk);
  std::vector<std::span<float>> state(2);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    state[i] = state_[i].span().first(stretch.length());
    member_.shard->Read(i, stretch, state[i]);
  }
  member_.optimizer.StepPart({.step = member_.optimizer.steps() + 1,
                              .scale = scale_,
                              .gradients = gradient_.span().first(stretch.length()),
                              .parameters = chunk,
                              .first = state[0],
                              .second = state[1]});
}

// Where this member holds a stretch beside its own, others' parameters take the gradient's place.
void ShardedStep::KeepGradients() {
  const std::vector<ShardPiece>& pieces = member_.shard->pieces();
  gradients_.resize(pieces.size());
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const ShardStretch& stretch = pieces[i].stretch;
    if (gradients_[i].size() != stretch.length()) {
      gradients_[i] = member_.device.Allocate(stretch.length());
    }
    member_.device.Copy(group_.vector().subspan(stretch.begin, stretch.length()),
                        gradients_[i].span());
  }
}

void ShardedStep::KeepUndecided() {
  UndecidedStep step{
      .rounds = member_.rounds, .step = member_.optimizer.steps() + 1, .scale = scale_};
  const std::vector<ShardPiece>& pieces = member_.shard->pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ShardStretch& stretch = pieces[i].stretch;
    const std::span<const float> gradient =
        i == 0 ? group_.vector().subspan(stretch.begin, stretch.length()) : gradients_[i].span();
    step.gradients.push_back(member_.device.Allocate(stretch.length()));
    member_.device.Copy(gradient, step.gradients.back().span());
    step.parameters.push_back(member_.device.Allocate(stretch.length()));
    member_.device.Copy(member_.parameters.subspan(stretch.begin, stretch.length()),
                        step.parameters.back().span());
  }
  member_.shard->undecided = std::move(step);
}

void ShardedStep::Take() {
  for (std::size_t i = 1; i < member_.shard->pieces().size(); ++i) TakePiece(i);
  const std::size_t rank = group_.rank();
  for (std::size_t i = 0; i < group_.size(); ++i) {
    const ShardStretch& stretch = group_.shards()[i];
    if (i == rank || stretch.length() == 0) continue;
    member_.device.Copy(group_.vector().subspan(stretch.begin, stretch.length()),
                        member_.parameters.subspan(stretch.begin, stretch.length()));
  }
  if (!member_.shard->pieces().empty()) {
    ShardPiece& own = member_.shard->pieces().front();
    const ShardStretch& stretch = own.stretch;
    member_.optimizer.StepPart(
        {.step = member_.optimizer.steps() + 1,
         .scale = scale_,
         .gradients = group_.vector().subspan(stretch.begin, stretch.length()),
         .parameters = member_.parameters.subspan(stretch.begin, stretch.length()),
         .first = StateOf(own, 0),
         .second = StateOf(own, 1)});
  }
  member_.optimizer.CountPartStep();
}

// The parameters that come of it are thrown away: the member that has the say has told them.
void ShardedStep::TakePiece(std::size_t index) {
  ShardPiece& piece = member_.shard->pieces()[index];
  for (std::size_t turn = 0; turn * kChunk < piece.stretch.length(); ++turn) {
    const ShardStretch chunk = ChunkOf(piece.stretch, turn);
    const std::size_t at = chunk.begin - piece.stretch.begin;
    const std::span<float> parameters = parameters_.span().first(chunk.length());
    member_.device.Copy(member_.parameters.subspan(chunk.begin, chunk.length()), parameters);
    const auto part = [&](std::span<float> whole) {
      return whole.empty() ? whole : whole.subspan(at, chunk.length());
    };
    member_.optimizer.StepPart({.step = member_.optimizer.steps() + 1,
                                .scale = scale_,
                                .gradients = part(gradients_[index].span()),
                                .parameters = parameters,
                                .first = part(StateOf(piece, 0)),
                                .second = part(StateOf(piece, 1))});
  }
}

void TakeUndecided(Member& member) {
  UndecidedStep step = *std::exchange(member.shard->undecided, {});
  std::vector<ShardPiece>& pieces = member.shard->pieces();
  TACTUS_CHECK(step.gradients.size() == pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    member.optimizer.StepPart({.step = step.step,
                               .scale = step.scale,
                               .gradients = step.gradients[i].span(),
                               .parameters = step.parameters[i].span(),
                               .first = StateOf(pieces[i], 0),
                               .second = StateOf(pieces[i], 1)});
  }
  member.device.Synchronize();  // before its memory goes
}

}  // namespace tactus::engine
