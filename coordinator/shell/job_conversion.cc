#include "coordinator/shell/job_conversion.h"

#include <algorithm>
#include <cmath>

#include "coordinator/job/record_fields.h"
#include "coordinator/spec/field_checks.h"
#include "policies/axis_policy.h"
#include "runtime/message_archive.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr char kPrefix[] = "projects/default/jobs/";
constexpr char kDecisions[] = "/decisions/";
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
  static const runtime::MessageFields<job::ResultRecord, v1::JobResult> kFields(
      {.ours = {"validation_loss", "validation_accuracy", "validation_samples", "validation_rounds",
                "train_seconds"},
       .theirs = {"validation", "train_time"}});
  v1::JobResult proto;
  kFields.Write(result, proto);
  proto.mutable_validation()->set_loss(result.validation_loss);
  proto.mutable_validation()->set_accuracy(result.validation_accuracy);
  proto.mutable_validation()->set_samples(result.validation_samples);
  proto.mutable_validation()->set_rounds(result.validation_rounds);
  *proto.mutable_train_time() = ToProtoDuration(result.train_seconds);
  return proto;
}

v1::ValidationProgress ToProto(const job::ValidationProgress& progress) {
  v1::ValidationProgress proto;
  if (progress.newest) *proto.mutable_newest() = service::ToProto(*progress.newest);
  if (progress.best) *proto.mutable_best() = service::ToProto(*progress.best);
  proto.set_count(progress.count);
  proto.set_seconds(progress.seconds);
  proto.set_since_best(progress.since_best);
  return proto;
}

// The enum of the API has no axis before the first.
v1::Axis ToProto(policies::Axis axis) {
  return static_cast<v1::Axis>(static_cast<int>(axis) + v1::AXIS_BATCH);
}

void SetTimes(const job::JobRecord& record, v1::Job& proto) {
  *proto.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != 0) *proto.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != 0) *proto.mutable_end_time() = ToTimestamp(record.end_time);
  if (record.update_time != 0) *proto.mutable_update_time() = ToTimestamp(record.update_time);
}

v1::JobAttempt ToProto(const job::AttemptRecord& attempt) {
  v1::JobAttempt proto;
  proto.set_number(attempt.number);
  *proto.mutable_start_time() = ToTimestamp(attempt.start_time);
  proto.set_first_round(attempt.first_round);
  proto.mutable_nodes()->Add(attempt.nodes.begin(), attempt.nodes.end());
  proto.set_workers(attempt.workers);
  if (attempt.end_time == 0) return proto;
  *proto.mutable_end_time() = ToTimestamp(attempt.end_time);
  proto.set_rounds(attempt.rounds);
  proto.set_samples(attempt.samples - std::min(attempt.samples, attempt.first_samples));
  proto.set_reason(attempt.reason);
  return proto;
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

absl::StatusOr<DecisionName> ParseDecisionName(const std::string& field, const std::string& name) {
  const std::size_t at = name.rfind(kDecisions);
  const bool parted = at != std::string::npos;
  const std::optional<policies::DecisionKey> key =
      parted ? policies::ParseDecisionId(name.substr(at + sizeof(kDecisions) - 1)) : std::nullopt;
  if (!key) {
    return runtime::InvalidFields(
        {{.field = field,
          .description = "found " + spec::Shown(name) +
                         ", allowed is projects/default/jobs/ID/decisions/PLAN-AXIS, such as "
                         "12-batch; tactus get decisions lists them"}});
  }
  absl::StatusOr<std::string> job = ParseJobName(field, name.substr(0, at));
  if (!job.ok()) return job.status();
  return DecisionName{.job = *std::move(job), .key = *key};
}

std::string NameOf(const DecisionName& name) {
  return JobName(name.job) + kDecisions + policies::IdOf(name.key);
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
  // Not `>`: what is not a number is 0 as well.
  if (!(std::abs(seconds) <= kDurationSecondsMax)) return duration;
  const double whole = std::floor(seconds);
  duration.set_seconds(static_cast<std::int64_t>(whole));
  duration.set_nanos(static_cast<std::int32_t>((seconds - whole) * 1e9));
  return duration;
}

v1::DeviceKind ToProto(job::DeviceKind kind) {
  switch (kind) {
    case job::DeviceKind::kStandard:
      return v1::DEVICE_KIND_UNSPECIFIED;
    case job::DeviceKind::kAny:
      return v1::DEVICE_KIND_ANY;
    case job::DeviceKind::kCpu:
      return v1::DEVICE_KIND_CPU;
    case job::DeviceKind::kCuda:
      return v1::DEVICE_KIND_CUDA;
  }
  return v1::DEVICE_KIND_UNSPECIFIED;
}

v1::Plan ToProto(const policies::Plan& plan) {
  static const runtime::MessageFields<policies::Plan, v1::Plan> kFields;
  v1::Plan proto;
  kFields.Write(plan, proto);
  return proto;
}

v1::JobProgress ToProto(const job::Progress& progress,
                        const std::vector<job::MemberRecord>& members) {
  static const runtime::MessageFields<job::WorkerProgress, v1::WorkerProgress> kWorkerFields(
      {.theirs = {"rank", "worker_id", "node", "device", "emulated_speed"}});
  v1::JobProgress proto;
  proto.set_rounds(progress.rounds);
  proto.set_epoch(progress.epoch);
  if (progress.epoch_samples > 0) {
    proto.set_epoch_fraction(static_cast<double>(progress.epoch_consumed) /
                             static_cast<double>(progress.epoch_samples));
  }
  proto.set_samples(progress.samples);
  proto.set_skipped_rounds(progress.skipped_rounds);
  proto.set_repeated_passes(progress.repeated_passes);
  proto.set_unrecorded_rounds(progress.unrecorded_rounds);
  proto.set_loss(progress.loss);
  proto.set_samples_per_second(progress.samples_per_second);
  *proto.mutable_elapsed() = ToProtoDuration(progress.elapsed_seconds);
  if (progress.eta_seconds) *proto.mutable_eta() = ToProtoDuration(*progress.eta_seconds);
  if (progress.validation.count > 0) *proto.mutable_validation() = ToProto(progress.validation);
  *proto.mutable_plan() = ToProto(progress.plan);
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    v1::WorkerProgress* worker = proto.add_workers();
    worker->set_rank(static_cast<std::uint32_t>(rank));
    worker->set_worker_id(members[rank].worker.value);
    worker->set_node(members[rank].node);
    worker->set_device(members[rank].device);
    worker->set_emulated_speed(members[rank].emulated_speed);
    if (rank < progress.workers.size()) kWorkerFields.Write(progress.workers[rank], *worker);
  }
  return proto;
}

v1::JobDeadline ToProto(const job::Rung& rung) {
  v1::JobDeadline proto;
  proto.set_name(rung.name);
  *proto.mutable_value() = ToProtoDuration(ToSeconds(rung.value));
  proto.set_guards(rung.guards);
  if (rung.of.rounds == 0) return proto;
  proto.set_round_seconds(rung.round_seconds);
  proto.set_rounds(rung.of.rounds);
  *proto.mutable_least() = ToProtoDuration(ToSeconds(rung.of.least));
  *proto.mutable_most() = ToProtoDuration(ToSeconds(rung.of.most));
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
  if (record.checkpoint) {
    const job::CheckpointRecord& checkpoint = *record.checkpoint;
    proto.set_checkpoint_rounds(checkpoint.rounds);
    proto.set_checkpoint_size_bytes(checkpoint.size_bytes);
    if (checkpoint.time != 0) *proto.mutable_checkpoint_time() = ToTimestamp(checkpoint.time);
  }
  for (const job::AttemptRecord& attempt : record.attempts) {
    *proto.add_attempts() = ToProto(attempt);
  }
  proto.set_regroups(record.regroups);
  proto.set_regroup_reason(record.regroup_reason);
  proto.set_differences(record.differences);
  proto.set_difference_reason(record.difference_reason);
  proto.set_selections(record.selections);
  proto.set_selection(record.selection);
  if (record.rollback) {
    proto.set_rollback_reason(record.rollback->reason);
    proto.set_rollback_samples(record.rollback->skip_samples);
  }
  proto.set_resizes(record.resizes);
  proto.set_resize_reason(record.resize_reason);
  if (record.retry_time != 0) *proto.mutable_retry_time() = ToTimestamp(record.retry_time);
  if (!record.from.empty()) proto.set_from(JobName(record.from));
  proto.set_owner(record.owner);
  if (!record.groups.empty()) {
    const job::TransportRecord& transport = record.groups.back().transport;
    proto.set_transport(std::string(NameOf(transport.kind)));
    proto.set_transport_reason(transport.reason);
    proto.set_mesh(record.groups.back().mesh);
  }
  return proto;
}

v1::Artifact ToProto(const job::ArtifactRecord& artifact) {
  static const runtime::MessageFields<job::ArtifactRecord, v1::Artifact> kFields;
  v1::Artifact proto;
  kFields.Write(artifact, proto);
  return proto;
}

v1::Round ToProto(const job::RoundRecord& round) {
  static const runtime::MessageFields<job::RoundRecord, v1::Round> kFields({.ours = {"job"}});
  v1::Round proto;
  kFields.Write(round, proto);
  return proto;
}

v1::ValidationPoint ToProto(const job::ValidationRecord& validation) {
  static const runtime::MessageFields<job::ValidationRecord, v1::ValidationPoint> kFields(
      {.ours = {"job", "train_seconds"}, .theirs = {"train_time"}});
  v1::ValidationPoint proto;
  kFields.Write(validation, proto);
  *proto.mutable_train_time() = ToProtoDuration(validation.train_seconds);
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
  proto.set_transport(std::string(NameOf(group.transport.kind)));
  proto.set_transport_reason(group.transport.reason);
  proto.set_mesh(group.mesh);
  return proto;
}

v1::Decision ToProto(const std::string& id, const policies::Decision& decision) {
  static const runtime::MessageFields<policies::Decision, v1::Decision> kFields(
      {.ours = {"axis", "seconds"}, .theirs = {"name", "axis", "train_time"}});
  v1::Decision proto;
  kFields.Write(decision, proto);
  proto.set_name(NameOf({.job = id, .key = {decision.plan_version, decision.axis}}));
  proto.set_axis(ToProto(decision.axis));
  *proto.mutable_train_time() = ToProtoDuration(decision.seconds);
  return proto;
}

v1::DeviceValues ToProto(const job::JobRecord& record, const policies::DeviceValues& values) {
  v1::DeviceValues proto;
  proto.set_name(JobName(record.name));
  proto.set_useful_samples_per_second(values.useful);
  const auto write = [&](const policies::DeviceValue& value, v1::DeviceValue* out) {
    const job::MemberRecord& member = record.members.at(value.rank);
    out->set_rank(value.rank);
    out->set_node(member.node);
    out->set_device(member.device);
    out->set_samples_per_second(value.speed);
    out->set_adds(value.adds);
    out->set_share(value.adds / values.useful);
  };
  for (const policies::DeviceValue& value : values.devices) write(value, proto.add_devices());
  for (const policies::DeviceValue& value : values.more) write(value, proto.add_more());
  proto.set_transfer_seconds(values.transfer_seconds);
  proto.set_transfer_seconds_less(values.transfer_seconds_less);
  proto.set_transfer_seconds_more(values.transfer_seconds_more);
  return proto;
}

}  // namespace tactus::service
