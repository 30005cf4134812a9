#include "tests/agent/engine/linear_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <thread>

#include "agent/collective/in_process.h"
#include "agent/collective/registration.h"
#include "agent/engine/combine/lanes.h"
#include "base/rng.h"
#include "cuda/nccl.h"

namespace tactus::engine {
namespace {

struct Sample {
  std::array<float, kWeights> x;
  float y;
};

Sample At(std::uint64_t index) {
  Rng rng = Rng(99).Fork(std::to_string(index));
  Sample sample{};
  float y = 0.5f;
  for (std::size_t i = 0; i < kWeights; ++i) {
    sample.x[i] = static_cast<float>(rng.Normal());
    y += sample.x[i] * static_cast<float>(i) * 0.1f;
  }
  sample.y = y + 0.1f * static_cast<float>(rng.Normal());
  return sample;
}

// Adds the gradient of the squared error over two; returns it.
double AddGradient(const Sample& sample, std::span<const float> parameters,
                   const cuda::SegmentTable& segments, std::span<float> gradients) {
  const std::size_t bias = segments[1].offset;
  float error = parameters[bias] - sample.y;
  for (std::size_t i = 0; i < kWeights; ++i) error += parameters[i] * sample.x[i];
  for (std::size_t i = 0; i < kWeights; ++i) gradients[i] += error * sample.x[i];
  gradients[bias] += error;
  return 0.5 * error * error;
}

// Of the member that this thread is; the moment at which it finds a collective done.
thread_local Instant member_time;

// Computes in the host's memory: on another device, parameters and gradients come and go.
class Trainee {
 public:
  Trainee(const GroupRun& run, collective::Transport& transport,
          std::unique_ptr<cuda::Device> device)
      : run_(run),
        transport_(transport),
        device_(std::move(device)),
        segments_{{.name = "weight", .length = kWeights, .shape = {kWeights}},
                  {.name = "bias", .length = 1, .shape = {1}}} {
    if (run.task) segments_ = run.task->segments;
    cuda::AssignOffsets(segments_);
    const std::size_t length = cuda::FlatLength(segments_);
    parameters_ = device_->Allocate(length);
    if (run.task) Start(run.task->start);
    if (run.from) device_->Copy(run.from->parameters, parameters_.span());
    losses_ = device_->AllocateSums(1);
    added_ = device_->AllocateSums(1);
    loss_on_host_ = device_->AllocateOnHost<double>(1);
    const std::size_t all = length + LaneCount(static_cast<std::size_t>(transport.size()));
    if (run.registers) gradients_ = cuda::nccl::Allocate(*device_, all);
    if (gradients_.size() == 0) gradients_ = device_->Allocate(all);
    if (run.registers) registered_ = RegisterTogether(transport, gradients_.span(), true);
  }

  ~Trainee() {
    if (registered_) transport_.Deregister();
  }

  MemberRun Run() {
    EngineOptions options = run_.options;
    if (run_.own_optimizer) {
      options.optimizer =
          run_.own_optimizer(transport_.rank(), *device_, segments_, parameters_.span());
    }
    const auto rank = static_cast<std::size_t>(transport_.rank());
    if (!run_.shard_weights.empty()) options.shards.weight = run_.shard_weights[rank];
    Member member(options, *device_, segments_, parameters_.span());
    if (run_.from) GoOnFrom(*run_.from, member);
    RoundEngine engine(
        member,
        {.gradients = gradients_.span(), .loss_sum = losses_.span(), .registered = registered_},
        transport_, run_.plan);
    MemberRun done;
    engine.Begin(Tick());
    if (engine.validation_due()) Validate(engine, done);
    ChooseWhereDue(engine);
    while (std::optional<Batch> batch = engine.NextBatch()) {
      if (run_.vanish && run_.vanish(transport_.rank(), engine.rounds())) break;
      const std::uint64_t plan_version = engine.plan().version;
      StepResult result = Compute(engine, *batch);
      if (run_.before_step) run_.before_step(transport_.rank(), engine, result);
      auto& samples = pending_[batch->round][batch->epoch];
      samples.insert(samples.end(), batch->indices.begin(), batch->indices.end());
      engine.Step(result);
      bool closed = false;
      while (const auto report = engine.TakeReport()) {
        done.reports.push_back(*report);
        done.plan_versions.push_back(plan_version);
        Commit(report->round, done);
        closed = true;
      }
      if (closed) done.trace.push_back(Parameters());
      if (engine.validation_due()) Validate(engine, done);
      ChooseWhereDue(engine);
      if (run_.keep_edges && transport_.rank() == 0 && engine.at_edge()) {
        done.edges.push_back({.state = engine.State(),
                              .parameters = Read(parameters_.span()),
                              .residuals = engine.TakeResiduals()});
      }
    }
    done.parameters = Read(parameters_.span());
    if (member.shard) done.shard_bytes = member.shard->bytes();
    done.outcome = engine.outcome();
    done.reason = engine.reason();
    done.asked_to_stop = engine.asked_to_stop();
    done.ends_validated = engine.validated().has_value();
    const bool kept = done.outcome == Outcome::kSuspended || done.outcome == Outcome::kFinished;
    if (kept) engine.GatherShards();
    if (kept) done.state = engine.State();
    if (kept) done.residuals = engine.TakeResiduals();
    return done;
  }

 private:
  void ChooseWhereDue(RoundEngine& engine) {
    if (!engine.selection_due()) return;
    engine.TakeSubset(run_.choose(transport_.rank(), engine), Tick());
  }

  void GoOnFrom(const Continued& from, Member& member) const {
    member.Restore(from.state);
    if (from.residuals.empty()) return;
    const ResidualParts parts = {.members = from.residuals.size(),
                                 .of = [&](std::size_t rank) { return from.residuals[rank]; }};
    member.encodings.Restore(ShareOf(parts, static_cast<std::size_t>(transport_.rank()),
                                     static_cast<std::size_t>(transport_.size())));
  }

  std::vector<float> Read(std::span<const float> values) {
    std::vector<float> read(values.size());
    device_->Copy(values, read);
    device_->Synchronize();
    return read;
  }

  void Start(const std::vector<float>& values) {
    std::vector<float> flat(parameters_.size());
    std::size_t at = 0;
    for (const cuda::Segment& segment : segments_) {
      for (std::size_t i = 0; i < segment.length; ++i) flat[segment.offset + i] = values[at++];
    }
    device_->Copy(flat, parameters_.span());
  }

  // Without padding.
  std::vector<float> Parameters() {
    const std::vector<float> flat = Read(parameters_.span());
    std::vector<float> values;
    for (const cuda::Segment& segment : segments_) {
      const auto part = std::span(flat).subspan(segment.offset, segment.length);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  void Commit(std::uint64_t round, MemberRun& done) {
    for (const auto& [epoch, samples] : pending_[round]) {
      auto& used = done.used[epoch];
      used.insert(used.end(), samples.begin(), samples.end());
    }
    pending_.erase(round);
  }

  void Validate(RoundEngine& engine, MemberRun& done) {
    const double loss = run_.validate(transport_.rank(), engine, Read(parameters_.span()));
    engine.TakeValidation({.loss = loss, .samples = 10, .end = Tick()});
    done.validated.push_back(engine.validations().state().last.rounds);
  }

  Instant Tick() { return member_time += std::chrono::milliseconds(1); }

  StepResult Compute(RoundEngine& engine, const Batch& batch) {
    StepResult result{.started = Tick()};
    const std::vector<float> parameters = Read(parameters_.span());
    std::vector<float> gradients = Read(gradients_.span());
    if (run_.on_batch) run_.on_batch(transport_.rank(), engine, batch, gradients);
    double loss = run_.options.mean_gradients ? AddMean(batch, parameters, gradients)
                                              : AddSum(batch, parameters, gradients);
    if (run_.after_gradient) run_.after_gradient(transport_.rank(), batch.round, gradients);
    if (run_.on_loss) run_.on_loss(transport_.rank(), engine, loss);
    device_->Copy(gradients, gradients_.span());
    AddLoss(loss);
    if (batch.last_of_round) Announce(engine);
    result.finished = Tick();
    return result;
  }

  double AddSum(const Batch& batch, std::span<const float> parameters,
                std::span<float> gradients) const {
    double loss = 0;
    for (std::size_t i = 0; i < batch.indices.size(); ++i) {
      if (batch.weights.empty()) {
        loss += AddOne(batch.indices[i], parameters, gradients);
      } else {
        loss += AddWeighted(batch.indices[i], batch.weights[i], parameters, gradients);
      }
    }
    return loss;
  }

  double AddOne(std::uint64_t index, std::span<const float> parameters,
                std::span<float> gradients) const {
    return run_.task ? run_.task->add_gradient(transport_.rank(), index, parameters, gradients)
                     : AddGradient(At(index), parameters, segments_, gradients);
  }

  double AddWeighted(std::uint64_t index, float weight, std::span<const float> parameters,
                     std::span<float> gradients) const {
    std::vector<float> one(gradients.size());
    const double loss = AddOne(index, parameters, one);
    for (std::size_t i = 0; i < one.size(); ++i) gradients[i] += weight * one[i];
    return weight * loss;
  }

  // As a framework does whose losses are means over a batch: the mean's weight is on the loss.
  double AddMean(const Batch& batch, std::span<const float> parameters,
                 std::span<float> gradients) const {
    if (batch.indices.empty()) return 0;
    std::vector<float> of_batch(gradients.size());
    const double loss = AddSum(batch, parameters, of_batch);
    const auto count = static_cast<double>(batch.indices.size());
    const auto weight = static_cast<float>(count / batch.unit);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const float mean = of_batch[i] / static_cast<float>(count);
      gradients[i] += weight == 1 ? mean : weight * mean;
    }
    return loss;
  }

  void Announce(RoundEngine& engine) {
    const auto announce = [&engine] {
      engine.SegmentReady(0);
      engine.SegmentReady(1);
    };
    if (run_.announce == GroupRun::Announce::kByOwnThread) announce();
    if (run_.announce == GroupRun::Announce::kByAnotherThread) std::jthread(announce).join();
  }

  void AddLoss(double loss) {
    loss_on_host_.span()[0] = loss;  // the last copy is through: parameters were read since
    device_->Copy(loss_on_host_.span(), added_.span());
    device_->AddRows(losses_.span(), added_.span(), losses_.span());
  }

  const GroupRun& run_;
  collective::Transport& transport_;
  std::unique_ptr<cuda::Device> device_;
  cuda::SegmentTable segments_;
  cuda::Buffer parameters_;
  cuda::Buffer gradients_;
  bool registered_ = false;
  cuda::Sums losses_;
  cuda::Sums added_;  // to them, by a batch
  cuda::Array<double> loss_on_host_;
  // Used in rounds that are not applied, by epoch.
  std::map<std::uint64_t, std::map<std::uint64_t, std::vector<std::uint64_t>>> pending_;
};

}  // namespace

std::vector<MemberRun> Train(const GroupRun& run) {
  const int size = static_cast<int>(run.plan.batch_sizes.size());
  return TrainIn({.transports = collective::MakeInProcessGroup(size, [] { return member_time; }),
                  .open_device = [](int) { return cuda::MakeHostDevice("cpu:0"); }},
                 run);
}

std::vector<MemberRun> TrainIn(World world, const GroupRun& run) {
  std::vector<MemberRun> done(world.transports.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < done.size(); ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<collective::Transport>& transport = world.transports[rank];
      done[rank] = Trainee(run, *transport, world.open_device(static_cast<int>(rank))).Run();
      if (done[rank].outcome == Outcome::kTraining) transport.reset();  // it vanished: a dead peer
    });
  }
  threads.clear();
  // All at once: who leaves may wait for the others.
  for (std::unique_ptr<collective::Transport>& transport : world.transports) {
    threads.emplace_back([&transport] { transport.reset(); });
  }
  return done;
}

Task Scalar(float start, std::function<double(int rank, double x)> slope) {
  return {.segments = {{.name = "x", .length = 1, .shape = {1}}},
          .start = {start},
          .add_gradient = [slope](int rank, std::uint64_t, std::span<const float> parameters,
                                  std::span<float> gradients) {
            gradients[0] += static_cast<float>(slope(rank, parameters[0]));
            return 1.0;
          }};
}

Task TwoQuadratics() {
  return Scalar(3, [](int rank, double x) { return rank == 0 ? x - 1 : 2 * (x + 1); });
}

void ExpectEverySampleOncePerEpoch(const std::vector<MemberRun>& group, std::uint64_t samples,
                                   std::uint64_t epochs) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> used;
  for (const MemberRun& member : group) {
    for (const auto& [epoch, indices] : member.used) {
      used[epoch].insert(used[epoch].end(), indices.begin(), indices.end());
    }
  }
  std::vector<std::uint64_t> all(samples);
  std::iota(all.begin(), all.end(), 0);
  ASSERT_EQ(used.size(), epochs);
  for (auto& [epoch, indices] : used) {
    std::ranges::sort(indices);
    EXPECT_EQ(indices, all) << "epoch " << epoch;
  }
}

}  // namespace tactus::engine
