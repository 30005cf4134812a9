// What a program that trains says of itself: its model's parameters, its optimizer, its data.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/engine/foreign_optimizer.h"
#include "agent/engine/stop_rule.h"
#include "cuda/ops/segments.h"
#include "policies/planner_options.h"

namespace tactus::sdk {

struct Program {
  std::string name = "program";
  std::string device = "cpu:0";
  cuda::SegmentTable segments{};    // offsets are assigned
  std::uint64_t buffers = 0;        // numbers that training changes and that are no parameters
  std::uint64_t train_samples = 1;  // in an epoch
  std::uint64_t seed = 1;           // of their order
  std::uint32_t batch = 1;          // samples of a step, of a worker, to begin with
  std::uint32_t micro_batch = 1;    // samples of one batch at most
  engine::ForeignOptions optimizer{};
  std::optional<double> clip_norm{};
  std::optional<std::uint32_t> nonfinite_rounds_max{};  // as engine::EngineOptions has it
  engine::StopOptions stop{};
  policies::PlannerOptions adapt{};  // of one that runs alone
  std::string output{};       // folder of its result; empty: it keeps what it wants by itself
  bool reads_ahead = false;   // it wants to know which samples are probably next
  bool lends_memory = false;  // of its device: Request::Kind::kMemory
  bool joins = false;         // a group that an agent tells it of; else it runs alone
};

// Of a JSON object:
//
//   name, device, seed, batch, micro_batch, train_samples, buffers, output, clip_norm,
//   nonfinite_rounds_max, reads_ahead, lends_memory
//   segments    [{"name": "fc.weight", "shape": [10, 512]}]  in the order in which backward passes
//               complete them
//   optimizer   {"kind": "adamw", "buffers": 2, "linear": false, "counts_steps": true,
//                "momentum": 0.9, "nesterov": false, "weight": 0.1, "second_decay": 0.999}
//               momentum: of an average or a sum of gradients whose newest has that weight; absent:
//               it keeps none. second_decay: of the average of squares that a step is divided by;
//               0: it goes by the latest gradient; absent: steps go along the gradient
//   stop        {"epochs": 3, "steps": 1000, "seconds": 60, "train_loss": 0.1}
//   adapt       {"batch": "fixed", "synchronization": "every_step", "learning_rate": "constant", ...}
//               a policy an axis, and "batch_min", "batch_max", "period"
//
// Errors: InvalidArgument, with the field, what was found and what is allowed.
absl::StatusOr<Program> ParseProgram(std::string_view json);

}  // namespace tactus::sdk
