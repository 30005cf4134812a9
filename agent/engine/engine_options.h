// What a round engine is told for a whole job; equal on all members.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/engine/combine/encodings.h"
#include "agent/engine/comparison.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/samples/subset.h"
#include "agent/engine/shards.h"
#include "agent/engine/stop_rule.h"
#include "agent/engine/validations.h"
#include "policies/learning_rate.h"

namespace tactus::engine {

// Of rounds in which members follow leaders: leader_rounds.cc.
struct LeaderOptions {
  // How far a member goes on the way to where its leaders are, as a share of it: with each exchange
  // with the leader of all, and with that of its node; and over the steps between two. [0, 1) each.
  double pull = 0.1;
  double node_pull = 0.1;
  double step_pull = 0.1;
  double node_step_pull = 0.1;
  std::uint32_t node_period = 0;   // steps between exchanges within a node; 0: by the period
  std::uint32_t loss_window = 10;  // steps whose loss says who leads, >= 1

  // A quarter of the period, where that is whole; else the period.
  std::uint32_t NodePeriod(std::uint32_t period) const {
    if (node_period > 0) return node_period;
    return period % 4 == 0 ? period / 4 : period;
  }
};

// Of rounds in which members mix with their neighbours: neighbour_rounds.cc.
struct NeighbourOptions {
  // What mixing changes is a part of what momentum is of. False: momentum is of gradients alone,
  // which enlarges what members with unlike samples differ by.
  bool correct_bias = true;
};

struct EngineOptions {
  std::uint64_t seed = 1;           // of the samples' order
  std::uint64_t train_samples = 1;  // in an epoch, >= 1: of the subset, where there is one
  SubsetOptions subset{};
  std::uint32_t micro_batch = 64;  // samples in one Batch at most, >= 1
  // Members that hold one copy of the model together, a part each: neighbours by rank, >= 1. They
  // share each step of their replica, and make its gradient together.
  std::uint32_t replica_members = 1;
  OptimizerOptions optimizer{};
  // Where it is on the optimizer is elementwise, and plans are of every step, densely or with an
  // encoding that leaves its momentum alone.
  ShardOptions shards{};
  policies::LearningRateOptions learning_rate{};
  std::optional<double> clip_norm{};  // > 0: the mean gradient's Euclidean norm is cut to it
  double block_momentum = 0;          // of periodic rounds, [0, 1)
  // The training's first steps, over which block momentum grows from 0: in proportion to a window's
  // first one. What an adaptive optimizer changes in them points elsewhere soon.
  std::uint32_t block_momentum_steps = 0;
  bool keep_local_momentum = true;    // of periodic rounds; false: zero after each combination
  bool elastic = false;               // windows of local steps last until all have taken theirs
  LeaderOptions leader{};
  NeighbourOptions neighbours{};
  bool look_ahead = false;  // rounds of `delayed` begin where the step under way will end
  // What the caller adds up in the gradient buffer. False: the samples' gradients. True: the mean
  // gradients of its batches, each times its share of Batch::unit, so that a batch which is all of
  // a step leaves its mean there, bit for bit.
  bool mean_gradients = false;
  StopOptions stop{};
  ValidationOptions validation{};
  ComparisonOptions comparison{};
  std::size_t bucket_bytes = 1u << 20;      // of one all-reduce, >= 4
  std::uint32_t nonfinite_rounds_max = 10;  // so many skipped updates in a row end the job, >= 1
  // The node of each rank, for Adasum between nodes and averages within; empty: all apart.
  std::vector<std::uint32_t> nodes{};
  EncodingOptions encoding{};  // its seed is the one above
};

}  // namespace tactus::engine
