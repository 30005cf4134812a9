#include "client/tables.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <vector>

#include "base/check.h"
#include "client/message_writer.h"
#include "client/names.h"
#include "client/progress_view.h"
#include "client/text.h"

namespace tactus::client {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string JsonText(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "{}\n";
}

// The formats that are the same for every message.
std::string RenderMessage(const google::protobuf::Message& message, OutputFormat format) {
  TACTUS_CHECK(format == OutputFormat::kJson || format == OutputFormat::kYaml);
  return format == OutputFormat::kJson ? JsonText(message) : WriteMessage(message);
}

bool IsGeneric(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

std::string EpochText(const v1::JobProgress& progress) {
  return FormatRate(static_cast<double>(progress.epoch()) + progress.epoch_fraction());
}

std::vector<std::string> JobRow(const v1::Job& job) {
  const v1::JobProgress& progress = job.progress();
  const bool trained = progress.rounds() > 0;
  return {Printable(ShortName(job.name())),
          StateName(job.state()),
          trained ? EpochText(progress) : "-",
          trained ? FormatCount(progress.rounds()) : "-",
          trained ? FormatLoss(progress.loss()) : "-",
          trained ? FormatRate(progress.samples_per_second()) : "-",
          std::to_string(progress.workers_size()),
          FormatLocalTime(job.create_time())};
}

void AddResult(const v1::JobResult& result, Rows* rows) {
  rows->push_back({"training took", FormatSpan(FromProto(result.train_time()))});
  rows->push_back({"train loss", FormatLoss(result.train_loss())});
  if (result.validation().samples() > 0) {
    rows->push_back({"validation loss", FormatLoss(result.validation().loss())});
    if (result.validation().accuracy() >= 0) {
      rows->push_back({"accuracy", FormatPercent(result.validation().accuracy())});
    }
  }
  rows->push_back({"utilisation", FormatRate(result.utilisation())});
  for (const v1::Artifact& artifact : result.artifacts()) {
    rows->push_back(
        {"file", Printable(artifact.path()) + " (" + FormatBytes(artifact.size_bytes()) + ")"});
  }
}

std::string WorkersTable(const v1::JobProgress& progress) {
  Rows rows = {{"RANK", "NODE", "DEVICE", "BATCH", "SAMPLES", "SAMPLES/S", "IDLE"}};
  for (const v1::WorkerProgress& worker : progress.workers()) {
    rows.push_back({std::to_string(worker.rank()), Printable(worker.node()),
                    Printable(worker.device()), std::to_string(worker.batch_size()),
                    FormatCount(worker.samples()), FormatRate(worker.samples_per_second()),
                    FormatPercent(worker.idle_ratio())});
  }
  return rows.size() == 1 ? "" : "\n" + FormatTable(rows);
}

std::string JobTable(const v1::Job& job) {
  Rows rows = {{"name", Printable(ShortName(job.name()))}, {"state", StateName(job.state())}};
  if (!job.state_reason().empty()) rows.push_back({"reason", Printable(job.state_reason())});
  if (!job.error_field().empty()) rows.push_back({"field", Printable(job.error_field())});
  rows.push_back({"created", FormatLocalTime(job.create_time())});
  rows.push_back({"started", FormatLocalTime(job.start_time())});
  rows.push_back({"ended", FormatLocalTime(job.end_time())});
  if (job.progress().rounds() > 0) {
    rows.push_back({"epochs", EpochText(job.progress())});
    rows.push_back({"rounds", FormatCount(job.progress().rounds())});
    rows.push_back({"samples", FormatCount(job.progress().samples())});
    rows.push_back({"samples/s", FormatRate(job.progress().samples_per_second())});
    rows.push_back({"loss", FormatLoss(job.progress().loss())});
  }
  if (job.has_result()) AddResult(job.result(), &rows);
  return FormatTable(rows) + WorkersTable(job.progress());
}

std::string DeviceText(const v1::Device& device) {
  return device.emulated_speed() > 0 ? "at " + FormatRate(device.emulated_speed()) : "real";
}

}  // namespace

OutputFormat ParseOutputFormat(const std::string& text) {
  if (text == "json") return OutputFormat::kJson;
  if (text == "yaml") return OutputFormat::kYaml;
  if (text == "name") return OutputFormat::kName;
  TACTUS_CHECK(text == "table");
  return OutputFormat::kTable;
}

std::string Render(const v1::ListJobsResponse& jobs, OutputFormat format) {
  if (IsGeneric(format)) return RenderMessage(jobs, format);
  Rows rows = {{"NAME", "STATE", "EPOCHS", "ROUNDS", "LOSS", "SAMPLES/S", "WORKERS", "CREATED"}};
  if (format == OutputFormat::kName) rows.clear();
  for (const v1::Job& job : jobs.jobs()) {
    if (format == OutputFormat::kName) {
      rows.push_back({Printable(ShortName(job.name()))});
    } else {
      rows.push_back(JobRow(job));
    }
  }
  return FormatTable(rows);
}

std::string Render(const v1::ListNodesResponse& nodes, OutputFormat format) {
  if (IsGeneric(format)) return RenderMessage(nodes, format);
  Rows rows = {{"NODE", "STATE", "DEVICE", "KIND", "MODEL", "SPEED", "JOB", "METRICS"}};
  if (format == OutputFormat::kName) rows.clear();
  for (const v1::Node& node : nodes.nodes()) {
    const std::string name = Printable(ShortName(node.name()));
    if (format == OutputFormat::kName) {
      rows.push_back({name});
      continue;
    }
    const std::string state = node.connected() ? "connected" : "lost";
    const std::string metrics =
        node.metrics_address().empty() ? "-" : Printable(node.metrics_address());
    if (node.devices().empty()) rows.push_back({name, state, "-", "-", "-", "-", "-", metrics});
    for (const v1::Device& device : node.devices()) {
      const auto* kind = v1::DeviceKind_descriptor()->FindValueByNumber(device.kind());
      rows.push_back({name, state, Printable(device.name()),
                      kind == nullptr ? "-" : EnumValueName(*kind), Printable(device.model()),
                      DeviceText(device),
                      device.job().empty() ? "-" : Printable(ShortName(device.job())), metrics});
    }
  }
  return FormatTable(rows);
}

std::string Render(const v1::ListRoundsResponse& rounds, OutputFormat format) {
  if (IsGeneric(format)) return RenderMessage(rounds, format);
  Rows rows = {{"ROUND", "EPOCH", "LOSS", "SAMPLES", "SECONDS", "PLAN", "SAMPLES BY RANK"}};
  if (format == OutputFormat::kName) rows.clear();
  for (const v1::Round& round : rounds.rounds()) {
    if (format == OutputFormat::kName) {
      rows.push_back({std::to_string(round.round())});
      continue;
    }
    rows.push_back({std::to_string(round.round()), std::to_string(round.epoch()),
                    FormatLoss(round.loss()), FormatCount(round.samples()),
                    FormatLoss(round.seconds()), std::to_string(round.plan_version()),
                    JoinNumbers(round.worker_samples())});
  }
  return FormatTable(rows);
}

std::string Render(const v1::ListDecisionsResponse& decisions, OutputFormat format) {
  if (IsGeneric(format)) return RenderMessage(decisions, format);
  Rows rows = {
      {"PLAN", "ROUND", "TIME", "AXIS", "FROM", "TO", "PREDICTED", "MEASURED", "METRIC", "REASON"}};
  if (format == OutputFormat::kName) rows.clear();
  for (const v1::Decision& decision : decisions.decisions()) {
    if (format == OutputFormat::kName) {
      rows.push_back({Printable(ShortName(decision.name()))});
      continue;
    }
    const bool promises = !decision.metric().empty();
    const bool measured = decision.has_measured_gain();
    rows.push_back({std::to_string(decision.plan_version()), FormatCount(decision.round()),
                    FormatSpan(FromProto(decision.train_time())), AxisName(decision.axis()),
                    decision.from().empty() ? "-" : Printable(decision.from()),
                    Printable(decision.to()),
                    promises ? FormatGain(decision.predicted_gain()) : "-",
                    measured ? FormatGain(decision.measured_gain()) : "-",
                    promises ? Printable(decision.metric()) : "-", Printable(decision.reason())});
  }
  return FormatTable(rows);
}

std::string AxisName(v1::Axis axis) {
  const auto* value = v1::Axis_descriptor()->FindValueByNumber(axis);
  std::string name = value == nullptr ? "unknown" : EnumValueName(*value);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string FormatGain(double gain) {
  const std::string percent = FormatPercent(gain);
  return gain < 0 || !std::isfinite(gain) ? percent : "+" + percent;
}

std::string Render(const v1::Job& job, OutputFormat format) {
  if (IsGeneric(format)) return RenderMessage(job, format);
  return format == OutputFormat::kName ? Printable(ShortName(job.name())) + "\n" : JobTable(job);
}

std::string FormatLocalTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  const std::time_t seconds = time.seconds();
  std::tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "-";
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return std::string(text.data(), length);
}

}  // namespace tactus::client
