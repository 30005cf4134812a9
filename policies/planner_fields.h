// The fields of the planner's options, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "policies/planner_options.h"

namespace tactus::policies {

void Fields(auto& archive, Of<BatchOptions> auto& batch) {
  archive("per_worker", batch.per_worker);
  archive("batch_min", batch.batch_min);
  archive("batch_max", batch.batch_max);
  archive("replica_members", batch.replica_members);
}

void Fields(auto& archive, Of<SynchronizationOptions> auto& synchronization) {
  archive("policy", synchronization.policy);
  archive("period", synchronization.period);
  archive("period_max", synchronization.period_max);
  archive("interval_seconds", synchronization.interval_seconds);
  archive("log_time", synchronization.log_time);
  archive("loss_floor", synchronization.loss_floor);
  archive("steps_max", synchronization.steps_max);
  archive("look_ahead", synchronization.look_ahead);
  archive("rate_falls_at", synchronization.rate_falls_at);
  archive("graph", synchronization.graph);
  archive("correct_bias", synchronization.correct_bias);
}

void Fields(auto& archive, Of<EncodingOptions> auto& encoding) {
  archive("bits", encoding.bits);
  archive("bin", encoding.bin);
  archive("convolution_bin", encoding.convolution_bin);
  archive("share", encoding.share);
  archive("candidates", encoding.candidates);
  archive("rows", encoding.rows);
  archive("columns", encoding.columns);
}

void Fields(auto& archive, Of<PlannerOptions> auto& adapt) {
  archive("batch_policy", adapt.batch_policy);
  archive("batch", adapt.batch);
  archive("synchronization", adapt.synchronization);
  archive("aggregation_policy", adapt.aggregation_policy);
  archive("learning_rate_policy", adapt.learning_rate_policy);
  archive("encoding_policy", adapt.encoding_policy);
  archive("encoding", adapt.encoding);
  archive("base_batch", adapt.base_batch);
  archive("optimizer", adapt.optimizer);
  archive("momentum", adapt.momentum);
  archive("clip_norm", adapt.clip_norm);
  archive("shard", adapt.shard);
  archive("mesh", adapt.mesh);
  archive("frozen", adapt.frozen);
}

}  // namespace tactus::policies
