#include "agent/worker/messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "agent/worker/job_json.h"
#include "agent/worker/proto_json.h"
#include "policies/plan_names.h"

namespace tactus::worker {
namespace {

policies::Plan ParsePlan(const FieldReader& plan) {
  const policies::Plan defaults;
  return {.version = plan.Unsigned("version").value_or(0),
          .synchronization = plan.Named("synchronization", policies::SynchronizationNamed)
                                 .value_or(defaults.synchronization),
          .period = std::max(1u, Narrow(plan.Unsigned("period")).value_or(defaults.period)),
          .aggregation =
              plan.Named("aggregation", policies::AggregationNamed).value_or(defaults.aggregation),
          .learning_rate_rule = plan.Named("learningRateRule", policies::LearningRateRuleNamed)
                                    .value_or(defaults.learning_rate_rule),
          .batch_sizes = plan.UnsignedList("batchSizes"),
          .reason = plan.String("reason").value_or("")};
}

StartMessage ParseStart(const FieldReader& start) {
  StartMessage message;
  message.job_id = start.String("jobId").value_or("");
  message.worker_id = start.Unsigned("workerId").value_or(0);
  message.job = ParseJob(start.Object("spec"));
  message.job_text = start.Object("spec").Text();
  message.device = start.String("device").value_or(message.device);
  message.emulated_speed = start.Number("emulatedSpeed").value_or(0);
  message.emulated_cpu_factor = start.Number("emulatedCpuFactor").value_or(1);
  message.address = start.String("address").value_or(message.address);
  message.output_directory = start.String("outputDirectory").value_or("");
  message.checkpoint = start.String("checkpoint").value_or("");
  return message;
}

ToWorker ParseKind(const FieldReader& line, std::string& error) {
  if (line.Has("start")) return ParseStart(line.Object("start"));
  if (line.Has("plan")) return ParsePlan(line.Object("plan"));
  if (line.Has("group")) {
    const FieldReader group = line.Object("group");
    return GroupMessage{.generation = group.Unsigned("generation").value_or(0),
                        .rank = Narrow(group.Unsigned("rank")).value_or(0),
                        .size = Narrow(group.Unsigned("size")).value_or(0),
                        .plan = ParsePlan(group.Object("plan")),
                        .nodes = group.UnsignedList("nodes")};
  }
  if (line.Has("peers")) {
    const FieldReader peers = line.Object("peers");
    return PeersMessage{.generation = peers.Unsigned("generation").value_or(0),
                        .endpoints = peers.BytesList("endpoints")};
  }
  if (line.Has("stop")) {
    const FieldReader stop = line.Object("stop");
    return StopMessage{.reason = stop.String("reason").value_or(""),
                       .discard = stop.Bool("discard").value_or(false),
                       .suspend = stop.Bool("suspend").value_or(false)};
  }
  error = "none of start, group, peers, plan, stop";
  return StopMessage{};
}

// proto3 JSON writes non-finite numbers as strings.
Json Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json Wide(std::uint64_t value) { return std::to_string(value); }

Json ToJson(const ReadyMessage& ready) {
  return {{"ready",
           {{"parameters", Wide(ready.parameters)},
            {"trainSamples", Wide(ready.train_samples)},
            {"validationSamples", Wide(ready.validation_samples)},
            {"samplesPerSecond", ready.samples_per_second}}}};
}

Json ToJson(const EndpointMessage& endpoint) {
  return {{"endpoint",
           {{"generation", Wide(endpoint.generation)},
            {"endpoint", absl::Base64Escape(endpoint.endpoint)}}}};
}

Json ToJson(const ReportMessage& message) {
  const policies::Report& report = message.report;
  return {{"report",
           {{"generation", Wide(message.generation)},
            {"round", Wide(report.round)},
            {"planVersion", Wide(report.plan_version)},
            {"rank", report.rank},
            {"samples", Wide(report.samples)},
            {"lossSum", Number(report.loss_sum)},
            {"steps", report.steps},
            {"computeSeconds", Number(report.compute_seconds)},
            {"blockedSeconds", Number(report.blocked_seconds)},
            {"transferSeconds", Number(report.transfer_seconds)},
            {"roundSeconds", Number(report.round_seconds)},
            {"updateSeconds", Number(report.update_seconds)},
            {"bytesSent", Wide(report.bytes_sent)},
            {"gradientNorm2Local", Number(report.gradient_norm2_local)},
            {"gradientNorm2Global", Number(report.gradient_norm2_global)},
            {"samplesGlobal", Wide(report.samples_global)},
            {"lossMeanGlobal", Number(report.loss_mean_global)},
            {"nonfiniteMembers", report.nonfinite_members},
            {"contributors", report.contributors},
            {"samplesGradientNorm2", Number(report.samples_gradient_norm2)},
            {"orthogonality", Number(report.orthogonality)},
            {"learningRate", Number(report.learning_rate)},
            {"gain", Number(report.gain)},
            {"progress", Number(report.progress)},
            {"epoch", Wide(report.epoch)},
            {"epochConsumed", Wide(report.epoch_consumed)},
            {"outOfMemory", message.out_of_memory}}}};
}

Json ToJson(const EvaluatedMessage& evaluated) {
  return {{"evaluated",
           {{"loss", Number(evaluated.loss)},
            {"accuracy", Number(evaluated.accuracy)},
            {"samples", Wide(evaluated.samples)}}}};
}

Json ToJson(const FinishedMessage& finished) {
  return {{"finished",
           {{"reason", finished.reason},
            {"rounds", Wide(finished.rounds)},
            {"samples", Wide(finished.samples)},
            {"samplesGlobal", Wide(finished.samples_global)},
            {"epochs", Wide(finished.epochs)},
            {"trainLoss", Number(finished.train_loss)},
            {"trainSeconds", Number(finished.train_seconds)},
            {"files", finished.files},
            {"parametersHash", Wide(finished.parameters_hash)},
            {"suspended", finished.suspended}}}};
}

Json ToJson(const FailedMessage& failed) {
  return {{"failed",
           {{"field", failed.field},
            {"message", failed.message},
            {"lostGeneration", Wide(failed.lost_generation)}}}};
}

}  // namespace

absl::StatusOr<ToWorker> ParseToWorker(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("message: not a JSON object");
  std::string error;
  ToWorker message = ParseKind(FieldReader(json, "", error), error);
  if (!error.empty()) return absl::InvalidArgumentError("message: " + error);
  return message;
}

std::string Format(const FromWorker& message) {
  const Json json = std::visit([](const auto& kind) { return ToJson(kind); }, message);
  // Messages quote file names and libraries' texts, which need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tactus::worker
