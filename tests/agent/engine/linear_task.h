// Tasks with known gradients for the engine's tests, trained by a group of threads: linear
// regression on computed samples, or what a test gives.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"

namespace tactus::engine {

// What a group goes on from.
struct Continued {
  EngineState state{};
  std::vector<float> parameters{};     // flat
  std::vector<Residuals> residuals{};  // by rank of the group that had them
};

// What one member did.
struct MemberRun {
  std::vector<float> parameters;
  std::vector<policies::Report> reports;
  std::vector<std::uint64_t> plan_versions;  // in force in each round
  std::map<std::uint64_t, std::vector<std::uint64_t>>
      used;                               // samples by epoch, applied rounds only
  std::vector<std::vector<float>> trace;  // parameters after each Step that closed a round
  Outcome outcome = Outcome::kTraining;
  std::string reason;
  bool asked_to_stop = false;
  std::optional<EngineState> state;      // of one that was suspended or finished
  std::vector<Residuals> residuals;      // likewise, where they came to it
  std::vector<Continued> edges;          // where GroupRun::keep_edges is set
  std::vector<std::uint64_t> validated;  // rounds that were applied before each validation
  bool ends_validated = false;           // its last parameters were
  std::size_t shard_bytes = 0;           // of the optimizer's state, where it is cut up
};

// A task in place of the linear one.
struct Task {
  cuda::SegmentTable segments{};  // offsets are assigned
  std::vector<float> start{};     // parameters, without padding
  // Adds the gradient of one sample's loss to `gradients` and returns the loss; both spans are the
  // whole flat buffer.
  std::function<double(int rank, std::uint64_t index, std::span<const float> parameters,
                       std::span<float> gradients)>
      add_gradient{};
};

struct GroupRun {
  EngineOptions options;
  policies::Plan plan;              // its batch_sizes say how many members there are
  std::optional<Task> task{};       // none: the linear one
  std::optional<Continued> from{};  // none: it begins
  bool keep_edges = false;          // of rank 0, after each Step that left it at an edge
  // Whether SegmentReady is called during the last batch of a round, and by whom: the member's own
  // thread, or another one while that waits, as libtorch does where it computes on a GPU.
  enum class Announce { kNot, kByOwnThread, kByAnotherThread };
  Announce announce = Announce::kNot;
  // Whether the members register their gradients, where the transport can.
  bool registers = false;
  // Of each member, in place of the options' one; empty: that.
  std::vector<std::uint64_t> shard_weights{};
  // Each member's, in place of the options': one that steps on its parameters in the segments'
  // layout.
  std::function<OptimizerOptions(int rank, cuda::Device& device, const cuda::SegmentTable& segments,
                                 std::span<float> parameters)>
      own_optimizer{};
  // Called by each member with what it is to work on, the gradients being those of the batches
  // before.
  std::function<void(int rank, const RoundEngine& engine, const Batch& batch,
                     std::span<const float> gradients)>
      on_batch{};
  // Called by each member before each Step; may offer plans, ask to stop.
  std::function<void(int rank, RoundEngine& engine, StepResult& result)> before_step{};
  // Called with what a batch adds to the sum of losses; may spoil it.
  std::function<void(int rank, const RoundEngine& engine, double& loss)> on_loss{};
  // Called after the gradient of a batch was added; may spoil it.
  std::function<void(int rank, std::uint64_t round, std::span<float> gradients)> after_gradient{};
  // The validation loss of the parameters, where a validation is due.
  std::function<double(int rank, const RoundEngine& engine, std::span<const float> parameters)>
      validate{};
  // The samples that epochs are made of from here on, where they are to be chosen; nothing: those
  // that were chosen before.
  std::function<std::optional<Subset>(int rank, const RoundEngine& engine)> choose{};
  // True: this member leaves without a word before its next batch.
  std::function<bool(int rank, std::uint64_t round)> vanish{};
};

// One parameter, and the slope of each member's loss at it.
Task Scalar(float start, std::function<double(int rank, double x)> slope);
// From 3; F_1 = (x - 1)^2 / 2, F_2 = (x + 1)^2.
Task TwoQuadratics();

// Trains on as many threads as the plan has members and returns what each did, by rank. Time
// advances by one millisecond per call in each member's world.
std::vector<MemberRun> Train(const GroupRun& run);

// That the members used each of so many samples once in each epoch.
void ExpectEverySampleOncePerEpoch(const std::vector<MemberRun>& group, std::uint64_t samples,
                                   std::uint64_t epochs);

// Where a group trains.
struct World {
  std::vector<std::unique_ptr<collective::Transport>> transports{};  // by rank
  std::function<std::unique_ptr<cuda::Device>(int rank)> open_device{};
};
std::vector<MemberRun> TrainIn(World world, const GroupRun& run);

// Dimensions of the linear task: weights and a bias, as two segments.
inline constexpr std::size_t kWeights = 20;

}  // namespace tactus::engine
