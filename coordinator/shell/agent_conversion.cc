#include "coordinator/shell/agent_conversion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/shell/job_conversion.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/resolve.h"
#include "protocol/leaving.h"
#include "protocol/worker_message_fields.h"
#include "runtime/message_archive.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kNodeNameBytesMax = 63;
constexpr int kDevicesMax = 1024;
constexpr int kRunningWorkersMax = 65536;
constexpr int kLabelsMax = 64;
constexpr std::size_t kLabelBytesMax = 63;
constexpr int kTaintsMax = 16;
constexpr std::size_t kTaintBytesMax = 127;  // key=value
constexpr std::size_t kTextBytesMax = 255;

using spec::IsPrintable;

absl::Status Wrong(const std::string& field, const std::string& description) {
  return runtime::InvalidFields({{.field = field, .description = description}});
}

absl::Status CheckText(const std::string& field, const std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max && IsPrintable(text)) return absl::OkStatus();
  return Wrong(field, "found " + std::to_string(text.size()) + " bytes, allowed are at most " +
                          std::to_string(bytes_max) + " without control characters");
}

absl::Status CheckCount(const std::string& field, int count, int allowed) {
  if (count <= allowed) return absl::OkStatus();
  return Wrong(field,
               "found " + std::to_string(count) + ", allowed are " + std::to_string(allowed));
}

absl::Status CheckNodeName(const std::string& name) {
  const bool right =
      !name.empty() && name.size() <= kNodeNameBytesMax &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
  if (right) return absl::OkStatus();
  return Wrong("hello.node", "found \"" + (IsPrintable(name) ? name.substr(0, 80) : "...") +
                                 "\", allowed are 1 to 63 of [a-z0-9-.]");
}

absl::StatusOr<job::DeviceKind> KindFrom(const std::string& field, v1::DeviceKind kind) {
  if (kind == v1::DEVICE_KIND_CUDA) return job::DeviceKind::kCuda;
  if (kind == v1::DEVICE_KIND_CPU) return job::DeviceKind::kCpu;
  return Wrong(field, "found " + std::to_string(kind) + ", allowed is CPU or CUDA");
}

absl::StatusOr<job::DeviceRecord> DeviceFrom(const std::string& field, const v1::Device& device) {
  if (device.name().empty()) return Wrong(field + ".name", "is missing");
  if (!(device.emulated_speed() >= 0)) {
    return Wrong(field + ".emulated_speed", "found a negative one, allowed is 0 or more");
  }
  absl::Status status = CheckText(field + ".name", device.name(), kTextBytesMax);
  if (status.ok()) status = CheckText(field + ".model", device.model(), kTextBytesMax);
  if (status.ok()) status = CheckText(field + ".uuid", device.uuid(), kTextBytesMax);
  if (status.ok()) status = CheckText(field + ".fault", device.fault(), kTextBytesMax);
  if (!status.ok()) return status;
  const absl::StatusOr<job::DeviceKind> kind = KindFrom(field + ".kind", device.kind());
  if (!kind.ok()) return kind.status();
  return job::DeviceRecord{.name = device.name(),
                           .kind = *kind,
                           .model = device.model(),
                           .emulated_speed = device.emulated_speed(),
                           .uuid = device.uuid(),
                           .memory_bytes = device.memory_bytes(),
                           .fault = device.fault()};
}

absl::StatusOr<job::NodeTraits> TraitsFrom(const agent::v1::Hello& hello) {
  job::NodeTraits traits;
  absl::Status status =
      CheckCount("hello.labels", static_cast<int>(hello.labels().size()), kLabelsMax);
  if (!status.ok()) return status;
  for (const auto& [key, value] : hello.labels()) {
    if (key.empty() || key.size() > kLabelBytesMax || !IsPrintable(key)) {
      return Wrong("hello.labels", "allowed are keys of 1 to 63 bytes without control characters");
    }
    status = CheckText("hello.labels." + key, value, kLabelBytesMax);
    if (!status.ok()) return status;
    traits.labels[key] = value;
  }
  status = CheckCount("hello.taints", hello.taints_size(), kTaintsMax);
  if (!status.ok()) return status;
  for (int i = 0; i < hello.taints_size(); ++i) {
    const std::string field = "hello.taints[" + std::to_string(i) + "]";
    const std::size_t key = std::min(hello.taints(i).find('='), hello.taints(i).size());
    if (key == 0 || key > kLabelBytesMax) {
      return Wrong(field, "allowed is key or key=value with a key of 1 to 63 bytes");
    }
    const absl::Status status = CheckText(field, hello.taints(i), kTaintBytesMax);
    if (!status.ok()) return status;
    traits.taints.push_back(hello.taints(i));
  }
  traits.arrays = hello.arrays();
  traits.worker_memory_bytes = hello.worker_memory_bytes();
  return traits;
}

// "1" of "1.2.3"; nothing when it does not begin with a number and a point.
std::string Major(const std::string& version) {
  const std::size_t end = version.find_first_not_of("0123456789");
  return end == 0 || end == std::string::npos || version[end] != '.' ? "" : version.substr(0, end);
}

absl::StatusOr<job::FromWorker> FromProto(const v1::FromWorker& proto) {
  static const runtime::MessageFields<job::FromWorker, v1::FromWorker> kFields;
  std::optional<job::FromWorker> message = kFields.Read(proto);
  if (proto.has_report()) {
    const absl::Status status =
        CheckText("from_worker.message.report.slowdown", proto.report().slowdown(), kTextBytesMax);
    if (!status.ok()) return status;
  }
  if (message) return *std::move(message);
  return runtime::InvalidFields({{.field = "from_worker.message", .description = "is missing"}});
}

absl::StatusOr<job::DeviceFaultsChanged> FromProto(const agent::v1::DeviceFaults& proto,
                                                   const std::string& node) {
  const absl::Status status = CheckCount("device_faults.faults", proto.faults_size(), kDevicesMax);
  if (!status.ok()) return status;
  job::DeviceFaultsChanged event{.node = node};
  for (int i = 0; i < proto.faults_size(); ++i) {
    const std::string field = "device_faults.faults[" + std::to_string(i) + "]";
    const agent::v1::DeviceFault& fault = proto.faults(i);
    if (fault.reason().empty()) return Wrong(field + ".reason", "is missing");
    absl::Status status = CheckText(field + ".device", fault.device(), kTextBytesMax);
    if (status.ok()) status = CheckText(field + ".reason", fault.reason(), kTextBytesMax);
    if (!status.ok()) return status;
    event.faults[fault.device()] = fault.reason();
  }
  return event;
}

// A time that nobody means is taken for the nearest that somebody might.
absl::StatusOr<job::Leave> FromProto(const std::string& field, const agent::v1::Leaving& proto) {
  if (proto.reason().empty()) return Wrong(field + ".reason", "is missing");
  const absl::Status status = CheckText(field + ".reason", proto.reason(), kTextBytesMax);
  if (!status.ok()) return status;
  constexpr auto kSecondsMost =
      std::chrono::duration_cast<std::chrono::seconds>(protocol::kLeaveMost).count();
  const std::int64_t seconds = std::clamp<std::int64_t>(proto.within().seconds(), 0, kSecondsMost);
  const std::int32_t nanos = std::clamp(proto.within().nanos(), 0, 999'999'999);
  return job::Leave{.reason = proto.reason(),
                    .within = std::chrono::seconds(seconds) + Duration(nanos)};
}

}  // namespace

absl::StatusOr<job::NodeJoined> FromProto(const agent::v1::Hello& hello) {
  absl::Status status = CheckNodeName(hello.node());
  if (status.ok()) {
    status = CheckText("hello.agent_version", hello.agent_version(), kTextBytesMax);
  }
  if (status.ok()) {
    status = CheckText("hello.metrics_address", hello.metrics_address(), kTextBytesMax);
  }
  if (!status.ok()) return status;
  status = CheckCount("hello.devices", hello.devices_size(), kDevicesMax);
  if (status.ok()) {
    status = CheckCount("hello.running_workers", hello.running_workers_size(), kRunningWorkersMax);
  }
  if (status.ok()) {
    status = CheckCount("hello.ended_workers", hello.ended_workers_size(), kRunningWorkersMax);
  }
  if (!status.ok()) return status;
  job::NodeJoined event;
  event.node = hello.node();
  event.incarnation = hello.incarnation();
  absl::StatusOr<job::NodeTraits> traits = TraitsFrom(hello);
  if (!traits.ok()) return traits.status();
  event.traits = *std::move(traits);
  for (int i = 0; i < hello.devices_size(); ++i) {
    auto device = DeviceFrom("hello.devices[" + std::to_string(i) + "]", hello.devices(i));
    if (!device.ok()) return device.status();
    event.devices.push_back(*std::move(device));
  }
  for (const std::uint64_t worker : hello.running_workers()) {
    event.running_workers.push_back(WorkerId{worker});
  }
  for (const std::uint64_t worker : hello.ended_workers()) {
    event.ended_workers.push_back(WorkerId{worker});
  }
  if (hello.has_leaving()) {
    absl::StatusOr<job::Leave> leave = FromProto("hello.leaving", hello.leaving());
    if (!leave.ok()) return leave.status();
    event.leave = *std::move(leave);
  }
  return event;
}

absl::Status CheckAgentVersion(const std::string& agent, const std::string& coordinator) {
  if (agent.empty() || Major(agent) == Major(coordinator)) return absl::OkStatus();
  return runtime::WithReason(
      absl::FailedPreconditionError("hello.agent_version: found " + agent +
                                    ", this coordinator is " + coordinator +
                                    "; the major version has to be the same"),
      {.reason = "AGENT_VERSION_MISMATCH",
       .metadata = {{"agent_version", agent}, {"coordinator_version", coordinator}}});
}

absl::StatusOr<job::Event> FromProto(const agent::v1::FromAgent& message, const std::string& node) {
  if (message.has_from_worker()) {
    auto said = FromProto(message.from_worker().message());
    if (!said.ok()) return said.status();
    return job::WorkerSaid{.worker = WorkerId{message.from_worker().worker_id()},
                           .message = *std::move(said)};
  }
  if (message.has_worker_exited()) {
    const agent::v1::WorkerExited& exited = message.worker_exited();
    return job::WorkerExited{.worker = WorkerId{exited.worker_id()},
                             .exit_code = exited.exit_code(),
                             .signal = exited.signal(),
                             .log_tail = exited.log_tail()};
  }
  if (message.has_device_faults()) return FromProto(message.device_faults(), node);
  if (message.has_leaving()) {
    absl::StatusOr<job::Leave> leave = FromProto("leaving", message.leaving());
    if (!leave.ok()) return leave.status();
    return job::NodeLeaving{.node = node, .leave = *std::move(leave)};
  }
  return runtime::InvalidFields(
      {{.field = "message",
        .description = "found none that is numbered; allowed is from_worker, worker_exited, "
                       "device_faults, leaving or link_probed"}});
}

agent::v1::ToAgent ToProto(const job::StartWorker& action) {
  agent::v1::ToAgent proto;
  agent::v1::StartWorker* start = proto.mutable_start_worker();
  start->set_worker_id(action.worker.value);
  start->set_array(action.array);
  start->mutable_start()->set_job_id(action.job_name);
  start->mutable_start()->set_worker_id(action.worker.value);
  // Workers get it complete: they have no defaults of their own.
  v1::JobSpec spec;
  if (spec.ParseFromString(action.spec))
    *start->mutable_start()->mutable_spec() = *spec::Resolve(spec);
  start->mutable_start()->set_device(action.device);
  if (!action.checkpoint.empty()) {
    start->mutable_start()->set_checkpoint("sha256:" + action.checkpoint);
  }
  start->mutable_start()->set_skip_samples(action.skip_samples);
  start->mutable_start()->set_pass_samples_max(action.pass_samples_max);
  return proto;
}

agent::v1::ToAgent ToProto(const job::SendToWorker& action) {
  agent::v1::ToAgent proto;
  proto.mutable_to_worker()->set_worker_id(action.worker.value);
  static const runtime::MessageFields<job::ToWorker, v1::ToWorker> kFields;
  kFields.Write(action.message, *proto.mutable_to_worker()->mutable_message());
  return proto;
}

agent::v1::ToAgent ToProto(const job::StopWorker& action) {
  agent::v1::ToAgent proto;
  proto.mutable_stop_worker()->set_worker_id(action.worker.value);
  *proto.mutable_stop_worker()->mutable_grace() = ToProtoDuration(ToSeconds(action.grace));
  return proto;
}

agent::v1::ToAgent ToProto(const job::LookAtWorker& action) {
  agent::v1::ToAgent proto;
  proto.mutable_look_at_worker()->set_worker_id(action.worker.value);
  return proto;
}

}  // namespace tactus::service
