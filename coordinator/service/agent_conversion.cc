#include "coordinator/service/agent_conversion.h"

#include <utility>

#include "coordinator/service/job_conversion.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kNodeNameBytesMax = 253;
constexpr int kDevicesMax = 1024;

bool IsNodeName(const std::string& name) {
  if (name.empty() || name.size() > kNodeNameBytesMax) return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string::npos;
}

absl::StatusOr<job::DeviceRecord> DeviceFrom(const std::string& field, const v1::Device& device) {
  job::DeviceRecord record = {.name = device.name(),
                              .kind = job::DeviceKind::kCpu,
                              .model = device.model(),
                              .emulated_speed = device.emulated_speed()};
  if (device.name().empty()) {
    return runtime::InvalidFields({{.field = field + ".name", .description = "is missing"}});
  }
  if (!(device.emulated_speed() >= 0)) {
    return runtime::InvalidFields({{.field = field + ".emulated_speed",
                                    .description = "found a negative one, allowed is 0 or more"}});
  }
  if (device.kind() == v1::DEVICE_KIND_CUDA) {
    record.kind = job::DeviceKind::kCuda;
  } else if (device.kind() != v1::DEVICE_KIND_CPU) {
    return runtime::InvalidFields(
        {{.field = field + ".kind",
          .description = "found " + std::to_string(device.kind()) + ", allowed is CPU or CUDA"}});
  }
  return record;
}

// Numbers of a plan are ours: they come back in reports, never as a plan.
policies::Report FromProto(const v1::RoundReport& proto) {
  policies::Report report;
  report.round = proto.round();
  report.plan_version = proto.plan_version();
  report.rank = proto.rank();
  report.samples = proto.samples();
  report.loss_sum = proto.loss_sum();
  report.steps = proto.steps();
  report.compute_seconds = proto.compute_seconds();
  report.blocked_seconds = proto.blocked_seconds();
  report.transfer_seconds = proto.transfer_seconds();
  report.round_seconds = proto.round_seconds();
  report.bytes_sent = proto.bytes_sent();
  report.gradient_norm2_local = proto.gradient_norm2_local();
  report.gradient_norm2_global = proto.gradient_norm2_global();
  report.samples_global = proto.samples_global();
  report.loss_mean_global = proto.loss_mean_global();
  report.nonfinite_members = proto.nonfinite_members();
  report.contributors = proto.contributors();
  report.samples_gradient_norm2 = proto.samples_gradient_norm2();
  report.orthogonality = proto.orthogonality();
  report.learning_rate = proto.learning_rate();
  report.gain = proto.gain();
  report.progress = proto.progress();
  report.epoch = proto.epoch();
  report.epoch_consumed = proto.epoch_consumed();
  return report;
}

job::FinishedMessage FromProto(const v1::Finished& proto) {
  job::FinishedMessage finished;
  finished.reason = proto.reason();
  finished.rounds = proto.rounds();
  finished.samples = proto.samples();
  finished.samples_global = proto.samples_global();
  finished.epochs = proto.epochs();
  finished.train_loss = proto.train_loss();
  finished.train_seconds = proto.train_seconds();
  finished.files.assign(proto.files().begin(), proto.files().end());
  finished.parameters_hash = proto.parameters_hash();
  return finished;
}

absl::StatusOr<job::FromWorker> FromProto(const v1::FromWorker& proto) {
  switch (proto.message_case()) {
    case v1::FromWorker::kReady:
      return job::ReadyMessage{.parameters = proto.ready().parameters(),
                               .train_samples = proto.ready().train_samples(),
                               .validation_samples = proto.ready().validation_samples(),
                               .samples_per_second = proto.ready().samples_per_second()};
    case v1::FromWorker::kEndpoint:
      return job::EndpointMessage{.generation = proto.endpoint().generation(),
                                  .endpoint = proto.endpoint().endpoint()};
    case v1::FromWorker::kReport:
      return job::ReportMessage{.generation = proto.report().generation(),
                                .report = FromProto(proto.report())};
    case v1::FromWorker::kEvaluated:
      return job::EvaluatedMessage{.loss = proto.evaluated().loss(),
                                   .accuracy = proto.evaluated().accuracy(),
                                   .samples = proto.evaluated().samples()};
    case v1::FromWorker::kFinished:
      return FromProto(proto.finished());
    case v1::FromWorker::kFailed:
      return job::FailedMessage{.field = proto.failed().field(),
                                .message = proto.failed().message(),
                                .lost_generation = proto.failed().lost_generation()};
    case v1::FromWorker::MESSAGE_NOT_SET:
      break;
  }
  return runtime::InvalidFields({{.field = "from_worker.message", .description = "is missing"}});
}

v1::ToWorker WorkerMessage(const job::ToWorker& message) {
  v1::ToWorker proto;
  if (const auto* group = std::get_if<job::GroupMessage>(&message)) {
    proto.mutable_group()->set_generation(group->generation);
    proto.mutable_group()->set_rank(group->rank);
    proto.mutable_group()->set_size(group->size);
    *proto.mutable_group()->mutable_plan() = ToProto(group->plan);
    proto.mutable_group()->mutable_nodes()->Add(group->nodes.begin(), group->nodes.end());
  } else if (const auto* peers = std::get_if<job::PeersMessage>(&message)) {
    proto.mutable_peers()->set_generation(peers->generation);
    for (const std::string& endpoint : peers->endpoints)
      proto.mutable_peers()->add_endpoints(endpoint);
  } else if (const auto* plan = std::get_if<policies::Plan>(&message)) {
    *proto.mutable_plan() = ToProto(*plan);
  } else {
    const auto& stop = std::get<job::StopMessage>(message);
    proto.mutable_stop()->set_reason(stop.reason);
    proto.mutable_stop()->set_discard(stop.discard);
  }
  return proto;
}

}  // namespace

absl::StatusOr<job::NodeJoined> FromProto(const agent::v1::Hello& hello) {
  if (!IsNodeName(hello.node())) {
    return runtime::InvalidFields(
        {{.field = "hello.node",
          .description =
              "found \"" + hello.node().substr(0, 80) +
              "\", allowed are 1 to 253 letters, digits, dots, dashes and underscores"}});
  }
  if (hello.devices_size() > kDevicesMax) {
    return runtime::InvalidFields(
        {{.field = "hello.devices",
          .description = "found " + std::to_string(hello.devices_size()) + ", allowed are " +
                         std::to_string(kDevicesMax)}});
  }
  job::NodeJoined event;
  event.node = hello.node();
  for (int i = 0; i < hello.devices_size(); ++i) {
    auto device = DeviceFrom("hello.devices[" + std::to_string(i) + "]", hello.devices(i));
    if (!device.ok()) return device.status();
    event.devices.push_back(*std::move(device));
  }
  for (const std::uint64_t worker : hello.running_workers()) {
    event.running_workers.push_back(WorkerId{worker});
  }
  return event;
}

absl::StatusOr<job::Event> FromProto(const agent::v1::FromAgent& message) {
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
  return runtime::InvalidFields(
      {{.field = "message",
        .description = "found none that is numbered; allowed is from_worker or "
                       "worker_exited"}});
}

agent::v1::ToAgent ToProto(const job::StartWorker& action) {
  agent::v1::ToAgent proto;
  agent::v1::StartWorker* start = proto.mutable_start_worker();
  start->set_worker_id(action.worker.value);
  start->mutable_start()->set_job_id(action.job_name);
  start->mutable_start()->set_worker_id(action.worker.value);
  if (!start->mutable_start()->mutable_spec()->ParseFromString(action.spec)) {
    start->mutable_start()->clear_spec();
  }
  start->mutable_start()->set_device(action.device);
  return proto;
}

agent::v1::ToAgent ToProto(const job::SendToWorker& action) {
  agent::v1::ToAgent proto;
  proto.mutable_to_worker()->set_worker_id(action.worker.value);
  *proto.mutable_to_worker()->mutable_message() = WorkerMessage(action.message);
  return proto;
}

agent::v1::ToAgent ToProto(const job::StopWorker& action) {
  agent::v1::ToAgent proto;
  proto.mutable_stop_worker()->set_worker_id(action.worker.value);
  *proto.mutable_stop_worker()->mutable_grace() = ToProtoDuration(ToSeconds(action.grace));
  return proto;
}

}  // namespace tactus::service
