#include "client/render/tables.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "client/render/progress_view.h"
#include "client/text/names.h"
#include "client/text/text.h"
#include "client/yaml/message_writer.h"

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

// The columns that a narrow terminal is not shown, the first of them first.
constexpr std::string_view kSpareOfJobs[] = {"CREATED", "PRIORITY",  "WORKERS", "EPOCHS",
                                             "ROUNDS",  "SAMPLES/S", "LOSS"};
constexpr std::string_view kSpareOfNodes[] = {"METRICS", "MODEL", "SPEED", "KIND", "JOB"};
constexpr std::string_view kSpareOfValues[] = {"NOTE", "SAMPLES/S", "USEFUL SAMPLES/S"};

// As far as the look leaves no more room.
Rows Fitted(Rows rows, std::span<const std::string_view> spare, const Look& look) {
  if (look.columns == 0 || look.format != OutputFormat::kTable) return rows;
  return FitTable(std::move(rows), spare, look.columns);
}

// A table whose column `state` is coloured where the look asks for it.
std::string StateTable(const Rows& rows, std::size_t state, const Look& look) {
  return FormatTable(rows, [&](std::size_t row, std::size_t column) {
    if (!look.colour || row == 0 || column != state) return std::string();
    return StateCode(rows[row][column]);
  });
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

// Its speed is that of now.
bool Trains(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_STOPPING;
}

// Those of its progress are of a group that is no more.
bool HasNoWorkers(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_PAUSED;
}

std::vector<std::string> JobRow(const v1::Job& job, bool wide) {
  const v1::JobProgress& progress = job.progress();
  const bool trained = progress.rounds() > 0;
  std::vector<std::string> row = {
      Printable(ShortName(job.name())),
      StateName(job.state()),
      std::to_string(job.spec().priority()),
      trained ? EpochText(progress) : "-",
      trained ? FormatCount(progress.rounds()) : "-",
      trained ? FormatLoss(progress.loss()) : "-",
      trained && Trains(job) ? FormatRate(progress.samples_per_second()) : "-",
      std::to_string(HasNoWorkers(job) ? 0 : progress.workers_size()),
      FormatLocalTime(job.create_time())};
  if (!wide) return row;
  row.insert(row.end(), {WorkersText(job.spec().workers()), FormatLocalTime(job.update_time()),
                         LabelsText(job.labels()), OrDash(job.state_reason())});
  return row;
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
  rows->push_back({"utilisation", FormatPercent(result.utilisation())});
  for (const v1::Artifact& artifact : result.artifacts()) {
    rows->push_back(
        {"file", Printable(artifact.path()) + " (" + FormatBytes(artifact.size_bytes()) + ")"});
  }
}

// "12 (35.0 MB), snapshots/0.000.safetensors to snapshots/11.004.safetensors"
std::string SnapshotsText(const v1::Job& job) {
  std::uint64_t bytes = 0;
  for (const v1::Artifact& snapshot : job.snapshots()) bytes += snapshot.size_bytes();
  return std::to_string(job.snapshots_size()) + " (" + FormatBytes(bytes) + "), " +
         Printable(job.snapshots().begin()->path()) + " to " +
         Printable(job.snapshots().rbegin()->path());
}

std::string LinkText(const v1::WorkerProgress& worker) {
  const double rate = worker.link_bytes_per_second();
  return rate > 0 ? FormatBytes(static_cast<std::uint64_t>(rate)) + "/s" : "";
}

std::string WorkersTable(const v1::JobProgress& progress) {
  Rows rows = {{"RANK", "WORKER", "NODE", "DEVICE", "BATCH", "SAMPLES OF GROUP", "SAMPLES/S",
                "IDLE", "LINK"}};
  for (const v1::WorkerProgress& worker : progress.workers()) {
    rows.push_back({std::to_string(worker.rank()), "worker-" + std::to_string(worker.worker_id()),
                    Printable(worker.node()), Printable(worker.device()),
                    std::to_string(worker.batch_size()), FormatCount(worker.samples()),
                    FormatRate(worker.samples_per_second()), FormatPercent(worker.idle_ratio()),
                    LinkText(worker)});
  }
  return rows.size() == 1 ? "" : "\n" + FormatTable(rows);
}

constexpr double kDataShown = 0.05;  // waiting for data above this is worth a line

// "rank 3 waits for it 41.0 % of its time", of the one that waits longest; empty where none waits
// long.
std::string DataText(const v1::JobProgress& progress) {
  const auto worst =
      std::ranges::max_element(progress.workers(), {}, &v1::WorkerProgress::data_ratio);
  if (worst == progress.workers().end() || worst->data_ratio() < kDataShown) return "";
  return "rank " + std::to_string(worst->rank()) + " waits for it " +
         FormatPercent(worst->data_ratio()) + " of its time";
}

std::string JobTable(const v1::Job& job, const Look& look) {
  const std::string state = StateName(job.state());
  Rows rows = {{"name", Printable(ShortName(job.name()))},
               {"state", look.colour ? Coloured(state, StateCode(state)) : state}};
  if (!job.state_reason().empty()) rows.push_back({"reason", Printable(job.state_reason())});
  if (!job.error_field().empty()) rows.push_back({"field", Printable(job.error_field())});
  if (job.spec().has_priority()) {
    rows.push_back({"priority", std::to_string(job.spec().priority())});
  }
  if (!job.labels().empty()) rows.push_back({"labels", LabelsText(job.labels())});
  rows.push_back({"created", FormatLocalTime(job.create_time())});
  rows.push_back({"started", FormatLocalTime(job.start_time())});
  rows.push_back({"ended", FormatLocalTime(job.end_time())});
  if (job.progress().rounds() > 0) {
    rows.push_back({"epochs", EpochText(job.progress())});
    rows.push_back({"rounds", FormatCount(job.progress().rounds())});
    rows.push_back({"samples", FormatCount(job.progress().samples())});
    if (Trains(job)) {
      rows.push_back({"samples/s", FormatRate(job.progress().samples_per_second())});
    }
    if (!job.has_result()) rows.push_back({"train loss", FormatLoss(job.progress().loss())});
    if (job.progress().validation().has_newest() && !job.has_result()) {
      rows.push_back({"validation loss", FormatLoss(job.progress().validation().newest().loss())});
    }
  }
  for (const auto& [name, text] : Shortfalls(job.progress())) rows.push_back({name, text});
  if (const std::string data = DataText(job.progress()); !data.empty()) {
    rows.push_back({"data", data});
  }
  if (job.has_result()) AddResult(job.result(), &rows);
  if (job.snapshots_size() > 0) rows.push_back({"snapshots", SnapshotsText(job)});
  return FormatTable(rows) + (HasNoWorkers(job) ? "" : WorkersTable(job.progress()));
}

std::string DeviceText(const v1::Device& device) {
  return device.emulated_speed() > 0 ? "at " + FormatRate(device.emulated_speed()) : "real";
}

std::vector<std::string> NodeRow(const v1::Node& node, const v1::Device* device, bool wide) {
  std::vector<std::string> row = {Printable(ShortName(node.name())), NodeStatus(node)};
  if (device == nullptr) {
    row.insert(row.end(), {"-", "-", "-", "-", "-"});
  } else {
    const auto* kind = v1::DeviceKind_descriptor()->FindValueByNumber(device->kind());
    row.insert(row.end(), {Printable(device->name()), kind == nullptr ? "-" : EnumValueName(*kind),
                           Printable(device->model()), DeviceText(*device), JobsText(*device)});
  }
  row.push_back(OrDash(node.metrics_address()));
  if (!wide) return row;
  const bool known = device != nullptr && device->memory_bytes() > 0;
  const bool measured = device != nullptr && device->samples_per_second() > 0;
  std::string taints;
  for (const std::string& taint : node.taints()) taints += (taints.empty() ? "" : ",") + taint;
  row.insert(row.end(), {known ? FormatBytes(device->memory_bytes()) : "-",
                         measured ? FormatRate(device->samples_per_second()) : "-",
                         device == nullptr ? "-" : OrDash(device->uuid()),
                         device == nullptr ? "-" : OrDash(device->fault()),
                         LabelsText(node.labels()), OrDash(taints), OrDash(node.agent_version())});
  return row;
}

void AddNode(const v1::Node& node, const Look& look, Rows* rows) {
  if (look.format == OutputFormat::kName) {
    return rows->push_back({Printable(ShortName(node.name()))});
  }
  const bool wide = look.format == OutputFormat::kWide;
  if (node.devices().empty()) rows->push_back(NodeRow(node, nullptr, wide));
  for (const v1::Device& device : node.devices()) rows->push_back(NodeRow(node, &device, wide));
}

Rows NodeHead(const Look& look) {
  if (look.format == OutputFormat::kName) return {};
  Rows rows = {{"NODE", "STATUS", "DEVICE", "KIND", "MODEL", "SPEED", "JOB", "METRICS"}};
  if (look.format == OutputFormat::kWide) {
    rows[0].insert(rows[0].end(),
                   {"MEMORY", "SAMPLES/S", "UUID", "FAULT", "LABELS", "TAINTS", "VERSION"});
  }
  return rows;
}

std::string NodeTable(Rows rows, const Look& look) {
  if (look.format == OutputFormat::kName) return FormatTable(rows);
  return StateTable(Fitted(std::move(rows), kSpareOfNodes, look), 1, look);
}

}  // namespace

OutputFormat ParseOutputFormat(const std::string& text) {
  if (text == "json") return OutputFormat::kJson;
  if (text == "yaml") return OutputFormat::kYaml;
  if (text == "name") return OutputFormat::kName;
  if (text == "wide") return OutputFormat::kWide;
  TACTUS_CHECK(text == "table");
  return OutputFormat::kTable;
}

// A coordinator of before arrays names one alone.
std::string JobsText(const v1::Device& device) {
  std::string text;
  for (const std::string& job : device.jobs()) {
    text += (text.empty() ? "" : ",") + Printable(ShortName(job));
  }
  return text.empty() ? OrDash(ShortName(device.job())) : text;
}

std::string NodeStatus(const v1::Node& node) {
  if (!node.connected()) return "gone";
  if (!node.leaving().empty()) return "leaving";
  if (node.draining()) {
    const bool busy = std::ranges::any_of(
        node.devices(), [](const v1::Device& device) { return !device.job().empty(); });
    return busy ? "draining" : "drained";
  }
  return node.cordoned() ? "cordoned" : "ready";
}

std::string StateCode(const std::string& state) {
  if (state == "succeeded" || state == "ready") return "32";
  if (state == "failed" || state == "gone") return "31";
  if (state == "running") return "36";
  const bool passing = state == "starting" || state == "stopping" || state == "suspending" ||
                       state == "leaving" || state == "cordoned" || state == "draining" ||
                       state == "drained" || state == "paused";
  return passing ? "33" : "";
}

std::string WorkersText(const v1::Workers& workers) {
  const std::string low = std::to_string(workers.has_min() ? workers.min() : 1);
  if (!workers.has_max()) return low + " or more";
  const std::string high = std::to_string(workers.max());
  return low == high ? low : low + " to " + high;
}

std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  std::string text;
  for (const auto& [key, value] : sorted) {
    text += (text.empty() ? "" : ",") + Printable(key) + "=" + Printable(value);
  }
  return text.empty() ? "-" : text;
}

std::string Render(const v1::ListJobsResponse& jobs, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(jobs, look.format);
  const bool wide = look.format == OutputFormat::kWide;
  Rows rows = {
      {"NAME", "STATE", "PRIORITY", "EPOCHS", "ROUNDS", "LOSS", "SAMPLES/S", "WORKERS", "CREATED"}};
  if (wide) rows[0].insert(rows[0].end(), {"WANTED", "UPDATED", "LABELS", "REASON"});
  if (look.format == OutputFormat::kName) rows.clear();
  for (const v1::Job& job : jobs.jobs()) {
    if (look.format == OutputFormat::kName) {
      rows.push_back({Printable(ShortName(job.name()))});
    } else {
      rows.push_back(JobRow(job, wide));
    }
  }
  if (look.format == OutputFormat::kName) return FormatTable(rows);
  return StateTable(Fitted(std::move(rows), kSpareOfJobs, look), 1, look);
}

std::string Render(const v1::ListNodesResponse& nodes, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(nodes, look.format);
  Rows rows = NodeHead(look);
  for (const v1::Node& node : nodes.nodes()) AddNode(node, look, &rows);
  return NodeTable(std::move(rows), look);
}

std::string Render(const v1::Node& node, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(node, look.format);
  Rows rows = NodeHead(look);
  AddNode(node, look, &rows);
  return NodeTable(std::move(rows), look);
}

std::string Render(const v1::ListRoundsResponse& rounds, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(rounds, look.format);
  Rows rows = {{"ROUND", "EPOCH", "LOSS", "SAMPLES", "SECONDS", "PLAN", "SAMPLES BY RANK"}};
  if (look.format == OutputFormat::kName) rows.clear();
  for (const v1::Round& round : rounds.rounds()) {
    if (look.format == OutputFormat::kName) {
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

std::string Render(const v1::ListValidationsResponse& validations, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(validations, look.format);
  Rows rows = {{"ROUNDS", "EPOCH", "TIME", "LOSS", "ACCURACY", "SAMPLES", "SECONDS"}};
  if (look.format == OutputFormat::kName) rows.clear();
  for (const v1::ValidationPoint& point : validations.validations()) {
    if (look.format == OutputFormat::kName) {
      rows.push_back({std::to_string(point.rounds())});
      continue;
    }
    rows.push_back({FormatCount(point.rounds()), std::to_string(point.epoch()),
                    FormatSpan(FromProto(point.train_time())), FormatLoss(point.loss()),
                    point.accuracy() >= 0 ? FormatPercent(point.accuracy()) : "-",
                    FormatCount(point.samples()), FormatLoss(point.seconds())});
  }
  return FormatTable(rows);
}

std::string Render(const v1::ListDecisionsResponse& decisions, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(decisions, look.format);
  Rows rows = {
      {"DECISION", "ROUND", "TIME", "FROM", "TO", "PREDICTED", "MEASURED", "METRIC", "REASON"}};
  if (look.format == OutputFormat::kName) rows.clear();
  for (const v1::Decision& decision : decisions.decisions()) {
    if (look.format == OutputFormat::kName) {
      rows.push_back({Printable(ShortName(decision.name()))});
      continue;
    }
    const bool promises = !decision.metric().empty();
    const bool measured = decision.has_measured_gain();
    rows.push_back({Printable(ShortName(decision.name())), FormatCount(decision.round()),
                    FormatSpan(FromProto(decision.train_time())),
                    decision.from().empty() ? "-" : Printable(decision.from()),
                    Printable(decision.to()),
                    promises ? FormatGain(decision.predicted_gain()) : "-",
                    measured ? FormatGain(decision.measured_gain()) : "-",
                    promises ? Printable(decision.metric()) : "-", Printable(decision.reason())});
  }
  return FormatTable(rows);
}

std::string Render(const v1::DeviceValues& values, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(values, look.format);
  Rows rows = {{"DEVICE", "SAMPLES/S", "USEFUL SAMPLES/S", "OF THE GROUP", "NOTE"}};
  const auto add = [&rows](const std::string& prefix, const v1::DeviceValue& value) {
    const std::string sign = value.adds() < 0 ? "-" : "+";
    rows.push_back({prefix + Printable(value.node() + " " + value.device()),
                    FormatRate(value.samples_per_second()),
                    sign + FormatRate(std::abs(value.adds())), FormatGain(value.share()),
                    value.adds() < 0 ? "costs more than it brings" : "-"});
  };
  for (const v1::DeviceValue& value : values.devices()) add("", value);
  for (const v1::DeviceValue& value : values.more()) add("one more like ", value);
  return FormatTable(Fitted(std::move(rows), kSpareOfValues, look));
}

std::vector<Shortfall> Shortfalls(const v1::JobProgress& progress) {
  std::vector<Shortfall> shortfalls;
  const auto add = [&](const char* name, std::uint64_t count, const std::string& text) {
    if (count > 0) shortfalls.push_back({.name = name, .text = text});
  };
  const std::uint64_t skipped = progress.skipped_rounds();
  const std::uint64_t passes = progress.repeated_passes();
  const std::uint64_t rounds = progress.unrecorded_rounds();
  add("skipped", skipped, CountOf(skipped, "update") + ", as numbers were not finite");
  add("repeated", passes,
      FormatCount(passes) + (passes == 1 ? " pass" : " passes") +
          " in pieces, as the device's memory was short");
  add("not on record", rounds, CountOf(rounds, "round") + ", as reports were lost");
  return shortfalls;
}

std::string ValidationText(const v1::ValidationPoint& validation) {
  std::string text = FormatLoss(validation.loss());
  if (validation.accuracy() >= 0) text += ", accuracy " + FormatPercent(validation.accuracy());
  return text + " (" + FormatCount(validation.samples()) + " samples)";
}

std::string AxisField(v1::Axis axis) {
  const auto* value = v1::Axis_descriptor()->FindValueByNumber(axis);
  return value == nullptr ? "unknown" : EnumValueName(*value);
}

std::string AxisName(v1::Axis axis) {
  std::string name = AxisField(axis);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string FormatGain(double gain) {
  const std::string percent = FormatPercent(gain);
  return gain < 0 || !std::isfinite(gain) ? percent : "+" + percent;
}

std::string Render(const v1::Job& job, Look look) {
  if (IsGeneric(look.format)) return RenderMessage(job, look.format);
  return look.format == OutputFormat::kName ? Printable(ShortName(job.name())) + "\n"
                                            : JobTable(job, look);
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
