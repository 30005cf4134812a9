#include "tests/agent/engine/mesh_task.h"

#include <cmath>
#include <thread>
#include <utility>
#include <variant>

#include "agent/collective/in_process.h"
#include "agent/collective/replicas.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/exact_sum.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/survivor.h"

namespace tactus::engine::mesh_task {
namespace {

cuda::SegmentTable SegmentsOf(const MeshShape& shape) {
  const std::size_t split = kSplit / static_cast<std::size_t>(shape.devices());
  const std::size_t copied = kCopied / static_cast<std::size_t>(shape.columns);
  cuda::SegmentTable segments = {
      {.name = "split", .length = split, .shape = {static_cast<std::int64_t>(split)}},
      {.name = "copied", .length = copied, .shape = {static_cast<std::int64_t>(copied)}}};
  cuda::AssignOffsets(segments);
  return segments;
}

// A vector of the device's memory, or of what is there.
template <class T>
std::vector<T> Read(cuda::Device& device, std::span<const T> values) {
  std::vector<T> read(values.size());
  device.Copy(values, std::span(read));
  device.Synchronize();
  return read;
}

bool SumOverReplica(const Meeting& meeting, std::span<float> values) {
  for (collective::Transport* const group :
       {meeting.groups.row.get(), meeting.groups.column.get()}) {
    if (group->StartAllReduceSum(values)->Wait().progress == Progress::kFailed) return false;
  }
  return true;
}

Completion AddOverReplica(const Meeting& meeting, std::span<double> sums) {
  Completion row = SumExactly(*meeting.groups.row, sums);
  if (row.progress == Progress::kFailed) return row;
  return SumExactly(*meeting.groups.column, sums);
}

}  // namespace

PartHolder::PartHolder(EngineOptions options, const MeshShape& shape, int rank,
                       std::unique_ptr<cuda::Device> device)
    : shape_(shape),
      place_(collective::PlaceOf(rank % shape.devices(), shape)),
      device_(std::move(device)),
      segments_(SegmentsOf(shape)),
      parameters_(device_->Allocate(cuda::FlatLength(segments_))) {
  options.replica_members = static_cast<std::uint32_t>(shape.devices());
  options.micro_batch = 1000;
  member_.emplace(options, *device_, segments_, parameters_.span());
}

std::vector<float> PartHolder::parameters() const {
  return Read<float>(*device_, parameters_.span());
}

EngineState PartHolder::State() {
  EngineState state;
  member_->CopyState(state);
  state.train_time = {};
  return state;
}

void PartHolder::ForEach(const std::function<void(std::size_t, std::size_t, bool)>& visit) const {
  const auto place = static_cast<std::size_t>(place_.row * shape_.columns + place_.column);
  const auto column = static_cast<std::size_t>(place_.column);
  for (std::size_t i = 0; i < segments_[0].length; ++i) {
    visit(segments_[0].offset + i, place * segments_[0].length + i, true);
  }
  for (std::size_t i = 0; i < segments_[1].length; ++i) {
    visit(segments_[1].offset + i, kSplit + column * segments_[1].length + i, place_.row == 0);
  }
}

std::optional<Outcome> PartHolder::TrainIn(const Meeting& meeting, const Stage& stage,
                                           const std::vector<std::uint64_t>& rounds) {
  const int rank = meeting.world.rank();
  const auto members = static_cast<std::size_t>(meeting.world.size());
  cuda::Buffer sums = device_->Allocate(parameters_.size() + LaneCount(members));
  const std::span<float> gradients = sums.span().first(parameters_.size());
  collective::ReplicaTransport transport(meeting.world, meeting.groups, shape_, gradients);
  cuda::Sums loss_sum = device_->AllocateSums(1);
  sums_ = 0;
  EngineBuffers buffers{.gradients = sums.span(), .loss_sum = loss_sum.span()};
  if (shape_.devices() > 1) {
    buffers.replica_sums = {.counts = {true, place_.row == 0},
                            .copies = {false, shape_.rows > 1},
                            .add = [&](std::span<double> own) {
                              Completion completion = AddOverReplica(meeting, own);
                              if (stage.loses_sum(rank, sums_++)) {
                                completion = {.progress = Progress::kFailed};
                              }
                              return completion;
                            }};
  }
  RoundEngine engine(*member_, std::move(buffers), transport, stage.plan);
  const auto lose = [&](const std::string& reason) {
    transport.Abort(reason);
    if (engine.outcome() == Outcome::kTraining) engine.LoseGroup(reason);
  };
  if (rounds.empty()) {
    engine.Begin(SurvivorTime());
  } else {
    engine.Begin(SurvivorTime(), {.rounds = rounds});
  }
  before_.clear();
  for (const Batch& batch : engine.UsedBefore()) {
    before_.insert(before_.end(), batch.indices.begin(), batch.indices.end());
  }
  while (const std::optional<Batch> batch = engine.NextBatch()) {
    StepResult result{.started = SurvivorTime()};
    if (!Pass(meeting, *batch, gradients, loss_sum.span())) {
      lose("a pass was lost");
      break;
    }
    if (const double added = stage.added_loss(rank, batch->round); added != 0) {
      const std::vector<double> sum = {Read<double>(*device_, loss_sum.span())[0] + added};
      device_->Copy(sum, loss_sum.span());
    }
    result.finished = SurvivorTime();
    if (!stage.before_step(rank, engine, gradients)) {
      transport.Abort("died");
      return std::nullopt;
    }
    engine.Step(result);
    while (const auto report = engine.TakeReport()) reports_.push_back(*report);
    if (engine.outcome() != Outcome::kTraining || stage.after_step(rank, engine)) continue;
    lose("told to");
  }
  if (engine.outcome() == Outcome::kGroupLost) lose("lost");
  return engine.outcome();
}

bool PartHolder::Pass(const Meeting& meeting, const Batch& batch, std::span<float> gradients,
                      std::span<double> loss_sum) {
  std::vector<float> x(kUnknowns);
  const std::vector<float> own = parameters();
  ForEach([&](std::size_t here, std::size_t among_all, bool counts) {
    if (counts) x[among_all] = own[here];
  });
  if (!SumOverReplica(meeting, x)) return false;
  std::vector<float> gradient(kUnknowns);
  double loss = 0;
  for (const std::uint64_t index : batch.indices) {
    Rng rng = Rng(7).Fork(std::to_string(index));
    std::vector<float> row(kUnknowns);
    for (float& value : row) value = static_cast<float>(rng.Normal());
    float error = 0;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      error += row[i] * (x[i] - 0.1f * static_cast<float>(i));
    }
    for (std::size_t i = 0; i < kUnknowns; ++i) gradient[i] += error * row[i];
    loss += 0.5 * error * error;
    passed_.push_back(index);
  }
  if (!SumOverReplica(meeting, gradient)) return false;
  std::vector<float> sums = Read<float>(*device_, gradients);
  ForEach(
      [&](std::size_t here, std::size_t among_all, bool) { sums[here] += gradient[among_all]; });
  device_->Copy(sums, gradients);
  const std::vector<double> loss_sums = {Read<double>(*device_, loss_sum)[0] + loss};
  device_->Copy(loss_sums, loss_sum);
  return true;
}

Replicas::Replicas(const EngineOptions& options, const MeshShape& shape, int count,
                   const OpenDevice& open)
    : shape_(shape) {
  for (int rank = 0; rank < count * shape.devices(); ++rank) {
    members_.push_back(std::make_unique<PartHolder>(options, shape, rank, open(rank)));
  }
}

std::vector<std::optional<Outcome>> Replicas::Train(const Stage& stage, bool goes_on) {
  const auto size = static_cast<int>(members_.size());
  auto worlds = collective::MakeInProcessGroup(size, SurvivorTime);
  auto groups = collective::MakeInProcessMeshes(size, shape_, SurvivorTime);
  std::vector<std::uint64_t> rounds;
  for (const auto& member : members_) rounds.push_back(member->member().rounds);
  if (!goes_on) rounds.clear();
  std::vector<std::optional<Outcome>> outcomes(members_.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const Meeting meeting{.shape = shape_, .world = *worlds[rank], .groups = groups[rank]};
      outcomes[rank] = members_[rank]->TrainIn(meeting, stage, rounds);
    });
  }
  threads.clear();
  return outcomes;
}

std::vector<float> Replicas::Parameters() const {
  const auto devices = static_cast<std::size_t>(shape_.devices());
  std::vector<float> whole(kUnknowns);
  for (std::size_t rank = 0; rank < devices; ++rank) {
    const std::vector<float> own = members_[rank]->parameters();
    members_[rank]->ForEach([&](std::size_t here, std::size_t among_all, bool counts) {
      if (counts) whole[among_all] = own[here];
    });
  }
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const std::vector<float> own = members_[rank]->parameters();
    members_[rank]->ForEach([&](std::size_t here, std::size_t among_all, bool) {
      EXPECT_EQ(own[here], whole[among_all]) << "rank " << rank;
    });
  }
  return whole;
}

Way WayOf(std::string name, OptimizerOptions optimizer) {
  return {
      .name = std::move(name),
      .options = {.train_samples = kSamples, .optimizer = optimizer, .stop = {.epochs = 3}},
  };
}

Way OfSgd(std::string name) {
  return WayOf(std::move(name), SgdOptions{.learning_rate = 0.01, .momentum = 0.5});
}

Way OfAdam() { return WayOf("Adam", AdamOptions{.learning_rate = 0.01}); }

// Parameters begin at zero, so that the first step is as long as the rate says, and the next is as
// long as what that made of them asks for.
Way OfLamb() { return WayOf("Lamb", LambOptions{.learning_rate = 0.1}); }

Way Clipped(Way way) {
  way.name = "Clipped" + way.name;
  way.options.clip_norm = 2;
  return way;
}

std::vector<Way> AllWays() {
  std::vector<Way> ways = {OfSgd(),
                           OfAdam(),
                           OfLamb(),
                           Clipped(OfSgd()),
                           Clipped(OfLamb()),
                           OfSgd("BlockMomentum"),
                           OfSgd("MomentumAnew")};
  ways[5].options.block_momentum = 0.3;
  ways[6].options.keep_local_momentum = false;
  return ways;
}

int SumsOfStep(const Way& way) {
  return std::holds_alternative<LambOptions>(way.options.optimizer) ? 2 : 1;
}

Plan PlanOf(const MeshShape& shape, const std::vector<std::uint32_t>& sizes) {
  Plan plan{.synchronization = Synchronization::kPeriodic, .period = kPeriod};
  const auto devices = static_cast<std::uint32_t>(shape.devices());
  for (const std::uint32_t size : sizes) {
    plan.batch_sizes.insert(plan.batch_sizes.end(), devices, size / devices);
  }
  return plan;
}

Plan PlanOfSteps(const MeshShape& shape, const std::vector<std::uint32_t>& sizes) {
  Plan plan = PlanOf(shape, sizes);
  plan.synchronization = Synchronization::kEveryStep;
  plan.period = 1;
  return plan;
}

double Distance(const std::vector<float>& one, const std::vector<float>& other) {
  double norm2 = 0;
  for (std::size_t i = 0; i < one.size(); ++i) norm2 += std::pow(double{one[i]} - other[i], 2);
  return std::sqrt(norm2);
}

std::string NameOf(const Way& way, const MeshShape& shape) {
  return way.name + std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

}  // namespace tactus::engine::mesh_task
