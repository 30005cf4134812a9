#include "coordinator/shell/job_conversion.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "coordinator/spec/field_checks.h"
#include "policies/axis_policy.h"
#include "policies/plan_names.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr char kPrefix[] = "projects/default/jobs/";
// The most that a google.protobuf.Duration may say; 10,000 years.
constexpr double kDurationSecondsMax = 315'576'000'000.0;
constexpr std::size_t kIdBytesMax = 63 + 1 + 20;

v1::JobState ToProto(job::JobState state) {
  switch (state) {
    case job::JobState::kQueued:
      return v1::JOB_STATE_QUEUED;
    case job::JobState::kStarting:
      return v1::JOB_STATE_STARTING;
    case job::JobState::kRunning:
      return v1::JOB_STATE_RUNNING;
    case job::JobState::kStopping:
      return v1::JOB_STATE_STOPPING;
    case job::JobState::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case job::JobState::kFailed:
      return v1::JOB_STATE_FAILED;
    case job::JobState::kCancelled:
      return v1::JOB_STATE_CANCELLED;
    case job::JobState::kSuspending:
      return v1::JOB_STATE_SUSPENDING;
    case job::JobState::kPaused:
      return v1::JOB_STATE_PAUSED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

v1::JobResult ToProto(const job::ResultRecord& result) {
  v1::JobResult proto;
  for (const job::ArtifactRecord& artifact : result.artifacts) {
    v1::Artifact* added = proto.add_artifacts();
    added->set_path(artifact.path);
    added->set_size_bytes(artifact.size_bytes);
    added->set_sha256(artifact.sha256);
  }
  proto.mutable_validation()->set_loss(result.validation_loss);
  proto.mutable_validation()->set_accuracy(result.validation_accuracy);
  proto.mutable_validation()->set_samples(result.validation_samples);
  proto.set_train_loss(result.train_loss);
  proto.set_rounds(result.rounds);
  proto.set_samples(result.samples);
  proto.set_epochs(result.epochs);
  *proto.mutable_train_time() = ToProtoDuration(result.train_seconds);
  proto.set_stop_reason(result.stop_reason);
  proto.set_utilisation(result.utilisation);
  return proto;
}

v1::Axis ToProto(policies::Axis axis) {
  switch (axis) {
    case policies::Axis::kBatch:
      return v1::AXIS_BATCH;
    case policies::Axis::kSynchronization:
      return v1::AXIS_SYNCHRONIZATION;
    case policies::Axis::kAggregation:
      return v1::AXIS_AGGREGATION;
    case policies::Axis::kLearningRate:
      return v1::AXIS_LEARNING_RATE;
  }
  return v1::AXIS_UNSPECIFIED;
}

void SetTimes(const job::JobRecord& record, v1::Job& proto) {
  *proto.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != 0) *proto.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != 0) *proto.mutable_end_time() = ToTimestamp(record.end_time);
  if (record.update_time != 0) *proto.mutable_update_time() = ToTimestamp(record.update_time);
}

}  // namespace

std::string JobName(const std::string& id) { return kPrefix + id; }

absl::StatusOr<std::string> ParseJobName(const std::string& field, const std::string& name) {
  const std::string id = name.starts_with(kPrefix) ? name.substr(sizeof(kPrefix) - 1) : name;
  bool right = !id.empty() && id.size() <= kIdBytesMax;
  for (const char c : id) {
    right = right && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
  if (right) return id;
  return runtime::InvalidFields(
      {{.field = field,
        .description = "found " + spec::Shown(name) +
                       ", allowed is projects/default/jobs/ID, or ID alone, of a-z, 0-9 and -"}});
}

JobId JobIdOf(const std::string& id) {
  const std::size_t dash = id.rfind('-');
  if (dash == std::string::npos) return {};
  JobId job;
  const char* const end = id.data() + id.size();
  const auto parsed = std::from_chars(id.data() + dash + 1, end, job.value);
  return parsed.ec == std::errc() && parsed.ptr == end ? job : JobId{};
}

std::string EtagOf(const job::JobRecord& record) { return std::to_string(record.announced); }

google::protobuf::Timestamp ToTimestamp(job::WallTime time) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(time / 1'000'000'000);
  timestamp.set_nanos(static_cast<std::int32_t>(time % 1'000'000'000));
  return timestamp;
}

google::protobuf::Duration ToProtoDuration(double seconds) {
  google::protobuf::Duration duration;
  if (!(std::abs(seconds) <= kDurationSecondsMax)) return duration;
  const double whole = std::floor(seconds);
  duration.set_seconds(static_cast<std::int64_t>(whole));
  duration.set_nanos(static_cast<std::int32_t>((seconds - whole) * 1e9));
  return duration;
}

v1::DeviceKind ToProto(job::DeviceKind kind) {
  switch (kind) {
    case job::DeviceKind::kAny:
      return v1::DEVICE_KIND_UNSPECIFIED;
    case job::DeviceKind::kCpu:
      return v1::DEVICE_KIND_CPU;
    case job::DeviceKind::kCuda:
      return v1::DEVICE_KIND_CUDA;
  }
  return v1::DEVICE_KIND_UNSPECIFIED;
}

v1::Plan ToProto(const policies::Plan& plan) {
  v1::Plan proto;
  proto.set_version(plan.version);
  proto.set_synchronization(std::string(policies::NameOf(plan.synchronization)));
  proto.set_period(plan.period);
  proto.set_aggregation(std::string(policies::NameOf(plan.aggregation)));
  proto.set_learning_rate_rule(std::string(policies::NameOf(plan.learning_rate_rule)));
  proto.mutable_batch_sizes()->Add(plan.batch_sizes.begin(), plan.batch_sizes.end());
  proto.set_reason(plan.reason);
  return proto;
}

v1::JobProgress ToProto(const job::Progress& progress,
                        const std::vector<job::MemberRecord>& members) {
  v1::JobProgress proto;
  proto.set_rounds(progress.rounds);
  proto.set_epoch(progress.epoch);
  if (progress.epoch_samples > 0) {
    proto.set_epoch_fraction(static_cast<double>(progress.epoch_consumed) /
                             static_cast<double>(progress.epoch_samples));
  }
  proto.set_samples(progress.samples);
  proto.set_loss(progress.loss);
  proto.set_samples_per_second(progress.samples_per_second);
  *proto.mutable_elapsed() = ToProtoDuration(progress.elapsed_seconds);
  if (progress.eta_seconds) *proto.mutable_eta() = ToProtoDuration(*progress.eta_seconds);
  *proto.mutable_plan() = ToProto(progress.plan);
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    v1::WorkerProgress* worker = proto.add_workers();
    worker->set_rank(static_cast<std::uint32_t>(rank));
    worker->set_worker_id(members[rank].worker.value);
    worker->set_node(members[rank].node);
    worker->set_device(members[rank].device);
    worker->set_emulated_speed(members[rank].emulated_speed);
    if (rank >= progress.workers.size()) continue;
    worker->set_batch_size(progress.workers[rank].batch_size);
    worker->set_samples(progress.workers[rank].samples);
    worker->set_samples_per_second(progress.workers[rank].samples_per_second);
    worker->set_idle_ratio(progress.workers[rank].idle_ratio);
  }
  return proto;
}

v1::Job ToProto(const job::JobRecord& record) {
  v1::Job proto;
  proto.set_name(JobName(record.name));
  proto.set_uid(record.uid);
  proto.set_state(ToProto(record.state));
  proto.set_state_reason(record.state_reason);
  if (!proto.mutable_spec()->ParseFromString(record.spec)) proto.clear_spec();
  SetTimes(record, proto);
  proto.set_etag(EtagOf(record));
  proto.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  *proto.mutable_progress() = ToProto(record.progress, record.members);
  if (record.result) *proto.mutable_result() = ToProto(*record.result);
  proto.set_error_field(record.error_field);
  if (record.checkpoint) proto.set_checkpoint_rounds(record.checkpoint->rounds);
  return proto;
}

v1::Round ToProto(const job::RoundRecord& round) {
  v1::Round proto;
  proto.set_round(round.round);
  proto.set_epoch(round.epoch);
  proto.set_samples(round.samples);
  proto.set_loss(round.loss);
  proto.set_seconds(round.seconds);
  proto.set_plan_version(round.plan_version);
  proto.mutable_worker_samples()->Add(round.worker_samples.begin(), round.worker_samples.end());
  proto.mutable_worker_compute_seconds()->Add(round.worker_compute_seconds.begin(),
                                              round.worker_compute_seconds.end());
  proto.mutable_worker_blocked_seconds()->Add(round.worker_blocked_seconds.begin(),
                                              round.worker_blocked_seconds.end());
  proto.set_bytes(round.bytes);
  proto.set_steps(round.steps);
  proto.set_learning_rate(round.learning_rate);
  proto.set_gain(round.gain);
  proto.set_progress(round.progress);
  proto.set_orthogonality(round.orthogonality);
  proto.set_transfer_seconds(round.transfer_seconds);
  proto.mutable_worker_update_seconds()->Add(round.worker_update_seconds.begin(),
                                             round.worker_update_seconds.end());
  return proto;
}

v1::RoundGroup ToProto(const job::GroupRecord& group) {
  v1::RoundGroup proto;
  proto.set_generation(group.generation);
  proto.set_first_round(group.first_round);
  for (const job::MemberRecord& member : group.members) {
    v1::RoundGroupMember* const out = proto.add_members();
    out->set_worker_id(member.worker.value);
    out->set_node(member.node);
    out->set_device(member.device);
  }
  return proto;
}

v1::Decision ToProto(const std::string& id, const policies::Decision& decision) {
  v1::Decision proto;
  std::string axis(policies::NameOf(decision.axis));
  std::ranges::replace(axis, ' ', '-');
  proto.set_name(JobName(id) + "/decisions/" + std::to_string(decision.plan_version) + "-" + axis);
  proto.set_plan_version(decision.plan_version);
  proto.set_axis(ToProto(decision.axis));
  proto.set_round(decision.round);
  *proto.mutable_train_time() = ToProtoDuration(decision.seconds);
  proto.set_from(decision.from);
  proto.set_to(decision.to);
  for (const policies::Quantity& input : decision.inputs) {
    v1::Quantity* quantity = proto.add_inputs();
    quantity->set_name(input.name);
    quantity->set_value(input.value);
    quantity->set_unit(input.unit);
  }
  proto.set_metric(decision.metric);
  proto.set_predicted_gain(decision.predicted_gain);
  for (const policies::Alternative& other : decision.alternatives) {
    v1::Alternative* alternative = proto.add_alternatives();
    alternative->set_value(other.value);
    alternative->set_predicted_gain(other.predicted_gain);
  }
  proto.set_reason(decision.reason);
  if (decision.measured_gain) proto.set_measured_gain(*decision.measured_gain);
  return proto;
}

}  // namespace tactus::service
