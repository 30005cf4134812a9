// What a job's file says about adapting, and what of its optimizer the policies must know.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/axes.h"
#include "policies/encodings.h"

namespace tactus::policies {

// What all batch policies are told at the start.
struct BatchOptions {
  std::uint32_t per_worker = 32;  // samples a worker a round, on average, >= 1; the sum is constant
  std::uint32_t batch_min = 1;    // of one worker, >= 1
  std::uint32_t batch_max = 1u << 20;  // of one worker, >= batch_min
  // Workers of consecutive ranks that pass over their samples together and have equal batches, as
  // their model is split over them; >= 1, and each group has a multiple of it.
  std::uint32_t replica_members = 1;

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

// How the synchronization is chosen; fields that a policy does not have are left alone.
struct SynchronizationOptions {
  std::string policy = "every_step";
  // periodic: tau, >= 1. adacomm: tau_0; 0: found by a short search at the start.
  std::uint32_t period = 0;
  std::uint32_t period_max = 128;  // adacomm and auto, >= 1
  double interval_seconds = 60;    // adacomm: T_0, > 0
  bool log_time = false;           // adacomm: AdacommOptions::log_time
  double loss_floor = 0;           // adacomm: F_inf
  std::uint32_t steps_max = 1024;  // delayed: steps of a round at most, >= 1
  bool look_ahead = false;         // delayed: EngineOptions::look_ahead
  // post_local: the base step at which the learning rate has fallen; nothing: it never does.
  std::optional<std::uint64_t> rate_falls_at{};
  std::string graph = "auto";  // decentlam: of kTopologyNames, or auto
  bool correct_bias = true;    // decentlam: engine::NeighbourOptions::correct_bias

  friend bool operator==(const SynchronizationOptions&, const SynchronizationOptions&) = default;
};

// The policies are those of policies/catalogue.h.
struct PlannerOptions {
  std::string batch_policy = "proportional";
  BatchOptions batch{};
  SynchronizationOptions synchronization{};
  std::string aggregation_policy = "average";
  std::string learning_rate_policy = "constant";
  std::string encoding_policy = "dense";
  EncodingOptions encoding{};
  std::uint32_t base_batch = 32;  // samples of a step that the learning rate was chosen for, >= 1
  std::string optimizer = "sgd";  // of policies/optimizers.h
  double momentum = 0;            // of sgd, [0, 1)
  std::optional<double> clip_norm{};  // EngineOptions::clip_norm
  std::string shard = "none";         // of the optimizer's state: engine::ShardBy
  std::string mesh = "none";          // how the model is split over a replica's devices: MeshKind
  // Axes that stay as they are, whatever the policies say and other axes change to.
  std::vector<Axis> frozen{};

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

// The name of the policy that the options have for the axis.
std::string& PolicyOf(PlannerOptions& options, Axis axis);
const std::string& PolicyOf(const PlannerOptions& options, Axis axis);

}  // namespace tactus::policies
