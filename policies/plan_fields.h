// The fields of plans and reports, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "policies/plan.h"
#include "policies/plan_names.h"

namespace tactus {

template <>
inline constexpr int kEnumMax<policies::Synchronization> =
    static_cast<int>(policies::kSynchronizationNames.size()) - 1;
template <>
inline constexpr int kEnumMax<policies::Aggregation> =
    static_cast<int>(policies::kAggregationNames.size()) - 1;
template <>
inline constexpr int kEnumMax<policies::LearningRateRule> =
    static_cast<int>(policies::kLearningRateRuleNames.size()) - 1;
template <>
inline constexpr int kEnumMax<policies::Trial> = static_cast<int>(policies::kTrialNames.size()) - 1;

}  // namespace tactus

namespace tactus::policies {

void Fields(auto& archive, Of<Plan> auto& plan) {
  archive("version", plan.version);
  archive("synchronization", plan.synchronization);
  archive("period", plan.period);
  archive("aggregation", plan.aggregation);
  archive("learning_rate_rule", plan.learning_rate_rule);
  archive("encoding", plan.encoding);
  archive("batch_sizes", plan.batch_sizes);
  archive("graph", plan.graph);
  archive("circle", plan.circle);
  archive("trial", plan.trial);
  archive("reason", plan.reason);
}

void Fields(auto& archive, Of<Report> auto& report) {
  archive("round", report.round);
  archive("plan_version", report.plan_version);
  archive("rank", report.rank);
  archive("samples", report.samples);
  archive("loss_sum", report.loss_sum);
  archive("steps", report.steps);
  archive("compute_seconds", report.compute_seconds);
  archive("data_seconds", report.data_seconds);
  archive("blocked_seconds", report.blocked_seconds);
  archive("transfer_seconds", report.transfer_seconds);
  archive("round_seconds", report.round_seconds);
  archive("update_seconds", report.update_seconds);
  archive("exchange_seconds", report.exchange_seconds);
  archive("link_bytes_per_second", report.link_bytes_per_second);
  archive("bytes_sent", report.bytes_sent);
  archive("gradient_norm2_local", report.gradient_norm2_local);
  archive("gradient_norm2_global", report.gradient_norm2_global);
  archive("samples_global", report.samples_global);
  archive("loss_mean_global", report.loss_mean_global);
  archive("local_samples_global", report.local_samples_global);
  archive("local_loss_mean_global", report.local_loss_mean_global);
  archive("nonfinite_members", report.nonfinite_members);
  archive("contributors", report.contributors);
  archive("samples_gradient_norm2", report.samples_gradient_norm2);
  archive("gradient_samples", report.gradient_samples);
  archive("orthogonality", report.orthogonality);
  archive("learning_rate", report.learning_rate);
  archive("gain", report.gain);
  archive("progress", report.progress);
  archive("epoch", report.epoch);
  archive("epoch_consumed", report.epoch_consumed);
  archive("slowdown", report.slowdown);
}

}  // namespace tactus::policies
