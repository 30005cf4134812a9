// What engines read of a job's specification, field by field: the lists by which a worker reads it
// as JSON and a coordinator or a simulation as protobuf (base/fields.h). Keys are those of
// proto/tactus/v1/spec.proto. The specification is resolved: a field that is not optional is there.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "agent/engine/round_engine.h"
#include "base/fields.h"

namespace tactus::engine {

// What becomes of the optimizer's momentum at the end of a periodic round.
enum class LocalMomentum { kReset, kKeep };

constexpr std::string_view NameOf(LocalMomentum momentum) {
  return momentum == LocalMomentum::kReset ? "reset" : "keep";
}

// By what craig tells samples apart.
enum class SubsetProxy { kGradients, kInputs };

constexpr std::string_view NameOf(SubsetProxy proxy) {
  return proxy == SubsetProxy::kInputs ? "inputs" : "gradients";
}

}  // namespace tactus::engine

namespace tactus {

template <>
inline constexpr int kEnumMax<engine::LocalMomentum> =
    static_cast<int>(engine::LocalMomentum::kKeep);
template <>
inline constexpr int kEnumMax<engine::SubsetProxy> = static_cast<int>(engine::SubsetProxy::kInputs);
template <>
inline constexpr int kEnumMax<engine::ValidationPolicy> =
    static_cast<int>(engine::ValidationPolicy::kNone);

}  // namespace tactus

namespace tactus::engine {

void Fields(auto& archive, Of<StopOptions> auto& stop) {
  archive("train_loss", stop.train_loss);
  archive("epochs", stop.epochs);
  archive("time", stop.time);
  archive("rounds", stop.rounds);
  archive("steps", stop.steps);
  archive("validation_loss", stop.validation_loss);
  archive("patience", stop.patience);
}

// How many samples there are only the data knows.
void ReadValidation(auto& archive, ValidationOptions& validation) {
  archive("policy", validation.policy);
  archive("every", validation.every);
  archive("epochs", validation.epochs);
  archive("rounds", validation.rounds);
}

void ReadSchedule(auto& archive, policies::Schedule& schedule) {
  using Shape = policies::Schedule::Shape;
  archive("warmup_steps", schedule.warmup_steps);
  archive.Within("step", [&](auto& step) {
    schedule.shape = Shape::kStep;
    step("boundaries", schedule.boundaries);
    step("factor", schedule.factor);
  });
  archive.Within("cosine", [&](auto& cosine) {
    schedule.shape = Shape::kCosine;
    cosine("steps", schedule.steps);
    cosine("final_rate", schedule.final_rate);
  });
}

// A field that only some policies have, of the type that it has in the schema: where it is not
// there, the engine is as the policy wants it.
template <typename Given>
void ReadIfThere(auto& archive, const char* key, auto& value) {
  std::optional<Given> given;
  archive(key, given);
  if (given) value = *given;
}

// Of policies with local steps.
void ReadWindows(auto& archive, EngineOptions& options) {
  std::optional<LocalMomentum> local_momentum;
  ReadIfThere<double>(archive, "block_momentum", options.block_momentum);
  ReadIfThere<std::uint32_t>(archive, "block_momentum_steps", options.block_momentum_steps);
  archive("local_momentum", local_momentum);
  ReadIfThere<bool>(archive, "elastic", options.elastic);
  if (local_momentum) options.keep_local_momentum = local_momentum == LocalMomentum::kKeep;
}

// Of members that follow leaders.
void ReadLeader(auto& archive, LeaderOptions& options) {
  ReadIfThere<double>(archive, "pull", options.pull);
  ReadIfThere<double>(archive, "node_pull", options.node_pull);
  ReadIfThere<double>(archive, "step_pull", options.step_pull);
  ReadIfThere<double>(archive, "node_step_pull", options.node_step_pull);
  ReadIfThere<std::uint32_t>(archive, "node_period", options.node_period);
  ReadIfThere<std::uint32_t>(archive, "loss_window", options.loss_window);
}

// Of members that mix with their neighbours.
void ReadNeighbours(auto& archive, NeighbourOptions& options) {
  ReadIfThere<bool>(archive, "correct_bias", options.correct_bias);
}

// Only of policies whose rounds may overlap.
void ReadOverlap(auto& archive, EngineOptions& options) {
  ReadIfThere<bool>(archive, "look_ahead", options.look_ahead);
}

// Each of one encoding alone.
void ReadEncoding(auto& archive, EncodingOptions& options) {
  ReadIfThere<double>(archive, "bits", options.dq.first_bits);
  ReadIfThere<double>(archive, "refinement", options.dq.rho);
  ReadIfThere<std::uint32_t>(archive, "bin", options.adacomp.bin);
  ReadIfThere<std::uint32_t>(archive, "convolution_bin", options.adacomp.bin_of_convolutions);
  ReadIfThere<double>(archive, "share", options.sketch.share);
  ReadIfThere<std::uint32_t>(archive, "candidates", options.sketch.candidates);
  ReadIfThere<std::uint32_t>(archive, "rows", options.sketch.rows);
  ReadIfThere<std::uint32_t>(archive, "columns", options.sketch.columns);
  ReadIfThere<std::uint32_t>(archive, "offered", options.sketch.offered);
  ReadIfThere<std::uint64_t>(archive, "warm_up", options.one_bit.warm_up);
}

// The kind is the one that is there.
void ReadSubset(auto& archive, SubsetOptions& subset) {
  const auto read = [&](SubsetKind kind) {
    return [&subset, kind](auto& one) {
      subset.kind = kind;
      one("fraction", subset.fraction);
      one("epochs", subset.epochs);
      std::optional<SubsetProxy> proxy;
      if (kind == SubsetKind::kCraig) one("proxy", proxy);
      subset.by_inputs = proxy == SubsetProxy::kInputs;
    };
  };
  archive.Within("random", read(SubsetKind::kRandom));
  archive.Within("craig", read(SubsetKind::kCraig));
}

// `archive` reads the whole specification. What is not in one stays as it is: train_samples,
// validation.samples, bucket_bytes, nodes, replica_members.
void ReadSpec(auto& archive, EngineOptions& options) {
  archive("seed", options.seed);
  archive.Within("optimizer", [&](auto& optimizer) {
    ReadChosen(optimizer, options.optimizer);
    optimizer("clip_norm", options.clip_norm);
    // A coordinator of before has neither.
    ReadIfThere<ShardBy>(optimizer, "shard", options.shards.by);
    ReadIfThere<std::uint32_t>(optimizer, "shard_copies", options.shards.copies);
  });
  archive.Within("data", [&](auto& data) {
    data.Within("subset", [&](auto& subset) { ReadSubset(subset, options.subset); });
  });
  archive.Within("stop", [&](auto& stop) { Fields(stop, options.stop); });
  archive.Within("validation",
                 [&](auto& validation) { ReadValidation(validation, options.validation); });
  archive.Within("adapt", [&](auto& adapt) {
    adapt.Within("batch", [&](auto& batch) { batch("micro_batch", options.micro_batch); });
    adapt.Within("synchronization", [&](auto& axis) {
      ReadWindows(axis, options);
      ReadLeader(axis, options.leader);
      ReadNeighbours(axis, options.neighbours);
      ReadOverlap(axis, options);
    });
    adapt.Within("encoding", [&](auto& axis) { ReadEncoding(axis, options.encoding); });
    adapt.Within("learning_rate", [&](auto& rate) {
      rate("base_batch", options.learning_rate.base_batch);
      rate.Within("schedule",
                  [&](auto& schedule) { ReadSchedule(schedule, options.learning_rate.schedule); });
    });
  });
  options.learning_rate.schedule.base = BaseLearningRate(options.optimizer);
}

}  // namespace tactus::engine
