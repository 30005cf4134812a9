#include "client/ask/simulation_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/text/quantity.h"
#include "client/text/text.h"
#include "policies/axes.h"

namespace tactus::client {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;
using simulator::Decision;
using simulator::JobOutcome;
using simulator::Outcome;
using simulator::WorkerOutcome;

std::string SpanText(double seconds) {
  return std::isfinite(seconds) ? FormatSpan(Seconds(seconds)) : "-";
}

// A round's, which may be far below a second.
std::string ShortSpanText(double seconds) {
  if (!(seconds < 0.995)) return SpanText(seconds);
  return seconds < 1e-3 ? FormatRate(1e6 * seconds) + " us" : FormatRate(1e3 * seconds) + " ms";
}

// One that is simulated from its history is called by its own name, not as one more of that name.
std::string TitleOf(const JobOutcome& job, const ReportOptions& options) {
  return options.fit ? ShortName(options.fit->job) : job.name;
}

std::string BytesText(double bytes) {
  return FormatBytes(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

// Of the worker's training time.
double TrainingSeconds(const WorkerOutcome& worker) {
  return worker.compute_seconds + worker.wait_seconds + worker.transfer_seconds;
}

Rows Figures(const JobOutcome& job, const ReportOptions& options) {
  Rows rows = {{"job", Printable(TitleOf(job, options))}, {"state", NameOf(job.state)}};
  if (!job.reason.empty()) rows.push_back({"reason", Printable(job.reason)});
  rows.push_back({"queued", SpanText(job.queued_seconds)});
  rows.push_back({"training took", SpanText(job.train_seconds)});
  if (options.loss) {
    const std::optional<double> seconds = SecondsToLoss(job, *options.loss);
    rows.push_back({"time to loss " + FormatNumber(*options.loss),
                    seconds ? SpanText(*seconds) : "not reached"});
  }
  rows.push_back({"samples/s", FormatRate(job.samples_per_second)});
  rows.push_back({"utilisation", FormatPercent(job.utilisation)});
  rows.push_back({"rounds", FormatCount(job.rounds)});
  rows.push_back({"samples", FormatCount(job.samples)});
  rows.push_back({"epochs", FormatCount(job.epochs)});
  rows.push_back({"train loss", FormatLoss(job.train_loss)});
  if (job.validation_loss) rows.push_back({"validation loss", FormatLoss(*job.validation_loss)});
  rows.push_back({"sent", BytesText(job.bytes)});
  rows.push_back({"decisions", FormatCount(job.decisions_total)});
  return rows;
}

std::string FitText(const FitSummary& fit) {
  const double off = fit.modelled_samples_per_second / fit.recorded_samples_per_second - 1;
  return FormatTable(
             {{"fitted to", Printable(fit.job) + ", " + FormatCount(fit.rounds) + " rounds"},
              {"recorded", FormatRate(fit.recorded_samples_per_second) + " samples/s"},
              {"modelled", FormatRate(fit.modelled_samples_per_second) + " samples/s (" +
                               (off < 0 ? "-" : "+") + FormatPercent(std::abs(off)) + ")"},
              {"transfer", ShortSpanText(fit.transfer_seconds) + " a round"}}) +
         "\n";
}

// The line that stands for rows left out; empty when there are none.
std::string MoreLine(std::size_t all, std::size_t shown, const std::string& what) {
  if (all <= shown) return "";
  return "... and " + FormatCount(all - shown) + " more " + what + "; -o json has them\n";
}

std::string WorkersText(const std::vector<WorkerOutcome>& workers) {
  if (workers.empty()) return "";
  const std::size_t shown = std::min(workers.size(), kWorkerRowsMax);
  Rows rows = {{"RANK", "NODE", "DEVICE", "SAMPLES", "COMPUTE", "WAIT", "TRANSFER"}};
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const WorkerOutcome& worker = workers[rank];
    const double all = TrainingSeconds(worker);
    const auto share = [&](double seconds) {
      return all > 0 ? FormatPercent(seconds / all) : std::string("-");
    };
    rows.push_back({std::to_string(rank), Printable(worker.node), Printable(worker.device),
                    FormatCount(worker.samples), share(worker.compute_seconds),
                    share(worker.wait_seconds), share(worker.transfer_seconds)});
  }
  return "\n" + FormatTable(rows) + MoreLine(workers.size(), shown, "workers");
}

std::string SharesText(const std::vector<std::uint32_t>& shares) {
  if (shares.size() <= kSharesShownMax) return JoinNumbers(shares);
  return JoinNumbers(std::vector(shares.begin(), shares.begin() + kSharesShownMax)) + ",...";
}

// "periodic 8, adasum, constant".
std::string ChoicesText(const policies::Plan& plan) {
  std::string text;
  for (const std::string& choice : policies::ChoicesOf(policies::RowsOf(plan))) {
    text += (text.empty() ? "" : ", ") + choice;
  }
  return text;
}

// The choices are shown where any decision left the defaults.
std::string DecisionsText(const JobOutcome& job) {
  if (job.decisions.empty()) return "";
  const std::size_t shown = std::min(job.decisions.size(), kDecisionRowsMax);
  const bool chosen = std::ranges::any_of(job.decisions, [](const Decision& decision) {
    return ChoicesText(decision.plan) != ChoicesText(policies::Plan{});
  });
  Rows rows = {{"DECIDED", "ROUND", "PLAN", "BATCH"}};
  if (chosen) rows[0].push_back("CHOICES");
  rows[0].push_back("REASON");
  for (std::size_t i = 0; i < shown; ++i) {
    const Decision& decision = job.decisions[i];
    std::vector<std::string>& row = rows.emplace_back();
    row = {SpanText(decision.seconds),
           decision.adopted_round ? FormatCount(*decision.adopted_round) : "-",
           std::to_string(decision.plan.version), SharesText(decision.plan.batch_sizes)};
    if (chosen) row.push_back(ChoicesText(decision.plan));
    row.push_back(Printable(decision.plan.reason));
  }
  return "\n" + FormatTable(rows) + MoreLine(job.decisions_total, shown, "decisions");
}

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json DecisionsJson(const JobOutcome& job) {
  Json list = Json::array();
  for (const Decision& decision : job.decisions) {
    Json& entry = list.emplace_back(
        Json{{"seconds", decision.seconds},
             {"adopted_round", decision.adopted_round ? Json(*decision.adopted_round) : Json()},
             {"plan_version", decision.plan.version}});
    for (const policies::PlanRow& row : policies::RowsOf(decision.plan)) {
      std::visit([&](const auto& value) { entry[std::string(row.name)] = value; }, row.value);
    }
    entry["reason"] = decision.plan.reason;
  }
  return list;
}

Json RecordJson(const policies::Decision& record) {
  Json inputs = Json::array();
  for (const policies::Quantity& input : record.inputs) {
    inputs.push_back({{"name", input.name}, {"value", input.value}, {"unit", input.unit}});
  }
  Json alternatives = Json::array();
  for (const policies::Alternative& other : record.alternatives) {
    alternatives.push_back({{"value", other.value}, {"predicted_gain", other.predicted_gain}});
  }
  return {{"plan_version", record.plan_version},
          {"axis", NameOf(record.axis)},
          {"round", record.round},
          {"seconds", record.seconds},
          {"from", record.from},
          {"to", record.to},
          {"inputs", inputs},
          {"metric", record.metric},
          {"predicted_gain", record.predicted_gain},
          {"alternatives", alternatives},
          {"reason", record.reason},
          {"measured_gain", OptionalJson(record.measured_gain)}};
}

Json RecordsJson(const JobOutcome& job) {
  Json list = Json::array();
  for (const policies::Decision& record : job.records) list.push_back(RecordJson(record));
  return list;
}

Json WorkersJson(const JobOutcome& job) {
  Json list = Json::array();
  for (const WorkerOutcome& worker : job.workers) {
    list.push_back({{"node", worker.node},
                    {"device", worker.device},
                    {"samples", worker.samples},
                    {"compute_seconds", worker.compute_seconds},
                    {"wait_seconds", worker.wait_seconds},
                    {"transfer_seconds", worker.transfer_seconds}});
  }
  return list;
}

Json ValidationJson(const JobOutcome& job) {
  Json list = Json::array();
  for (const simulator::ValidationPoint& point : job.validation) {
    list.push_back({{"seconds", point.seconds},
                    {"rounds", point.rounds},
                    {"samples", point.samples},
                    {"loss", point.loss}});
  }
  return list;
}

Json JobJson(const JobOutcome& job, const ReportOptions& options) {
  Json object = {{"name", TitleOf(job, options)},
                 {"state", NameOf(job.state)},
                 {"reason", job.reason},
                 {"queued_seconds", job.queued_seconds},
                 {"train_seconds", job.train_seconds}};
  if (options.loss) {
    object["loss"] = *options.loss;
    object["seconds_to_loss"] = OptionalJson(SecondsToLoss(job, *options.loss));
  }
  object["samples_per_second"] = job.samples_per_second;
  object["utilisation"] = job.utilisation;
  object["rounds"] = job.rounds;
  object["samples"] = job.samples;
  object["epochs"] = job.epochs;
  object["train_loss"] = job.train_loss;
  object["validation_loss"] = OptionalJson(job.validation_loss);
  object["validation"] = ValidationJson(job);
  object["bytes"] = job.bytes;
  object["workers"] = WorkersJson(job);
  object["decisions_total"] = job.decisions_total;
  object["decisions"] = DecisionsJson(job);
  object["records"] = RecordsJson(job);
  return object;
}

}  // namespace

std::string ReportTable(const Outcome& outcome, const ReportOptions& options) {
  std::string text = options.fit ? FitText(*options.fit) : "";
  for (const JobOutcome& job : outcome.jobs) {
    Rows rows = Figures(job, options);
    if (outcome.faults > 0) rows.push_back({"faults", FormatCount(outcome.faults)});
    rows.push_back({"seed", std::to_string(options.seed)});
    text += (text.empty() ? "" : "\n") + FormatTable(rows) + WorkersText(job.workers) +
            DecisionsText(job);
  }
  return text;
}

std::string ReportJson(const Outcome& outcome, const ReportOptions& options) {
  Json jobs = Json::array();
  for (const JobOutcome& job : outcome.jobs) jobs.push_back(JobJson(job, options));
  Json violations = Json::array();
  for (const simulator::Violation& violation : outcome.violations) {
    violations.push_back({{"seconds", violation.seconds}, {"what", violation.what}});
  }
  Json object = {{"seed", options.seed},
                 {"seconds", outcome.seconds},
                 {"events", outcome.events},
                 {"messages", outcome.messages},
                 {"faults", outcome.faults},
                 {"jobs", jobs},
                 {"violations_total", outcome.violations_total},
                 {"violations", violations}};
  if (options.fit) {
    object["fit"] = {{"job", options.fit->job},
                     {"rounds", options.fit->rounds},
                     {"transfer_seconds", options.fit->transfer_seconds},
                     {"recorded_samples_per_second", options.fit->recorded_samples_per_second},
                     {"modelled_samples_per_second", options.fit->modelled_samples_per_second}};
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tactus::client
