#include "client/render/describe.h"

#include <vector>

#include "client/render/plan_rows.h"
#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/yaml/message_writer.h"
#include "coordinator/job/arrays.h"
#include "coordinator/spec/shape_of_job.h"

namespace tactus::client {
namespace {

constexpr int kAttemptNodesMax = 8;  // that the coordinator says

using Rows = std::vector<std::vector<std::string>>;

std::string Section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : "\n" + title + ":\n" + Indented(text);
}

std::string PlanText(const v1::Plan& plan) {
  if (plan.version() == 0) return "";
  Rows rows = {{"version", std::to_string(plan.version())}};
  for (const policies::PlanRow& row : RowsOf(plan)) {
    rows.push_back({std::string(row.label), Printable(policies::TextOf(row.value))});
  }
  if (!plan.reason().empty()) rows.push_back({"reason", Printable(plan.reason())});
  return FormatTable(rows);
}

// "after 1200 rounds, 4.1 MB, 2026-11-22 20:11:05"
std::string CheckpointText(const v1::Job& job) {
  std::string text = "after " + FormatCount(job.checkpoint_rounds()) + " rounds";
  if (job.checkpoint_size_bytes() > 0) text += ", " + FormatBytes(job.checkpoint_size_bytes());
  if (job.has_checkpoint_time()) text += ", " + FormatLocalTime(job.checkpoint_time());
  return text;
}

// "lr-1f0c2a: shares a process with others of it on its device".
std::string ArrayText(const std::string& name, const v1::JobSpec& spec) {
  const std::string reason = spec::WhyByItself(spec::Resolve(spec));
  return Printable(name + ": " +
                   (reason.empty() ? "shares a process with others of it on its device"
                                   : "by itself, as " + reason));
}

std::string IdentityText(const v1::Job& job) {
  Rows rows = {{"resource", Printable(job.name())},
               {"uid", Printable(job.uid())},
               {"etag", Printable(job.etag())},
               {"workers wanted", WorkersText(job.spec().workers())},
               {"updated", FormatLocalTime(job.update_time())}};
  const auto array = job.labels().find(job::kArrayLabel);
  if (array != job.labels().end()) rows.push_back({"array", ArrayText(array->second, job.spec())});
  if (!job.owner().empty()) rows.push_back({"owner", Printable(job.owner())});
  if (job.checkpoint_rounds() > 0) {
    rows.push_back({"checkpoint", CheckpointText(job)});
  }
  if (job.regroups() > 0) {
    rows.push_back({"regrouped", Printable(TimesText(job.regroups()) + ", last because " +
                                           job.regroup_reason())});
  }
  if (job.differences() > 0) {
    rows.push_back({"wrong parameters",
                    Printable(TimesText(job.differences()) + ", last " + job.difference_reason())});
  }
  if (job.selections() > 0) {
    rows.push_back(
        {"subset", Printable(TimesText(job.selections()) + ", last " + job.selection())});
  }
  if (!job.rollback_reason().empty()) {
    const std::string passed = FormatCount(job.rollback_samples()) + " samples passed over";
    rows.push_back({"rolled back", Printable(job.rollback_reason() + "; " +
                                             (job.rollback_samples() > 0
                                                  ? passed
                                                  : "no checkpoint of before to go back to"))});
  }
  if (job.resizes() > 0) {
    rows.push_back(
        {"resized", Printable(TimesText(job.resizes()) + ", last " + job.resize_reason())});
  }
  if (!job.from().empty()) rows.push_back({"began from", Printable(job.from())});
  if (job.has_retry_time()) rows.push_back({"tried again", FormatLocalTime(job.retry_time())});
  if (!job.transport().empty()) {
    rows.push_back({"transport", Printable(job.transport() + ": " + job.transport_reason())});
  }
  if (!job.mesh().empty()) rows.push_back({"mesh", Printable(job.mesh())});
  return FormatTable(rows);
}

// "3 on a, b and others".
std::string PlaceText(const v1::JobAttempt& attempt) {
  std::string text = std::to_string(attempt.workers()) + " on ";
  for (int i = 0; i < attempt.nodes_size(); ++i) text += (i == 0 ? "" : ", ") + attempt.nodes(i);
  return attempt.nodes_size() == kAttemptNodesMax ? text + " and others" : text;
}

// A job that was tried once has nothing to tell that the rest does not.
std::string AttemptsText(const v1::Job& job) {
  if (job.attempts_size() == 0) return "";
  const bool once = job.attempts_size() == 1 && job.attempts(0).number() == 1;
  if (once && !job.has_retry_time() && !(job.attempts(0).has_end_time() && !IsOver(job.state()))) {
    return "";
  }
  Rows rows = {{"ATTEMPT", "STARTED", "ENDED", "WORKERS", "FROM ROUND", "TO ROUND", "SAMPLES",
                "WHY IT ENDED"}};
  for (const v1::JobAttempt& attempt : job.attempts()) {
    const bool over = attempt.has_end_time();
    rows.push_back({std::to_string(attempt.number()), FormatLocalTime(attempt.start_time()),
                    over ? FormatLocalTime(attempt.end_time()) : "-", Printable(PlaceText(attempt)),
                    FormatCount(attempt.first_round()),
                    FormatCount(over ? attempt.rounds() : job.progress().rounds()),
                    over ? FormatCount(attempt.samples()) : "-",
                    over ? Printable(attempt.reason()) : "goes on"});
  }
  return FormatTable(rows);
}

// "1.79, accuracy 61.0 % (10,000 samples), after 1,200 rounds".
std::string PlacedText(const v1::ValidationPoint& point) {
  return ValidationText(point) + ", after " + FormatCount(point.rounds()) + " rounds";
}

std::string ValidationsText(const v1::JobProgress& progress) {
  const v1::ValidationProgress& validation = progress.validation();
  if (validation.count() == 0) return "";
  Rows rows = {{"made", FormatCount(validation.count()) + ", which took " +
                            FormatSpan(Seconds(validation.seconds())) + " together"}};
  if (validation.has_newest()) rows.push_back({"newest loss", PlacedText(validation.newest())});
  if (validation.has_best()) rows.push_back({"best loss", PlacedText(validation.best())});
  if (validation.since_best() > 0) {
    rows.push_back({"without a new best", FormatCount(validation.since_best()) + " in a row"});
  }
  return FormatTable(rows);
}

// "20 x 0.0153 s, at least 2m 00s, at most 30d 00h".
std::string WhyText(const v1::JobDeadline& deadline) {
  if (!(deadline.rounds() > 0)) return "-";
  const std::string bounds = "at least " + FormatSpan(FromProto(deadline.least())) + ", at most " +
                             FormatSpan(FromProto(deadline.most()));
  if (!(deadline.round_seconds() > 0)) return bounds;
  return FormatCount(static_cast<std::uint64_t>(deadline.rounds())) + " x " +
         FormatRate(deadline.round_seconds()) + " s, " + bounds;
}

}  // namespace

std::string DescribeDeadlines(const v1::Job& job) {
  Rows rows = {{"DEADLINE", "VALUE", "ROUNDS x P99", "WHAT IT GUARDS"}};
  for (const v1::JobDeadline& deadline : job.deadlines()) {
    rows.push_back({Printable(deadline.name()), FormatSpan(FromProto(deadline.value())),
                    WhyText(deadline), Printable(deadline.guards())});
  }
  return rows.size() == 1 ? "the job is over: it waits for nothing\n" : FormatTable(rows);
}

std::string Describe(const v1::Job& job, bool colour) {
  std::string text = Render(job, Look(OutputFormat::kTable, colour));
  text += Section("identity", IdentityText(job));
  text += Section("attempts", AttemptsText(job));
  text += Section("validation", ValidationsText(job.progress()));
  text += Section("plan", PlanText(job.progress().plan()));
  return text + Section("job file", WriteMessage(job.spec()));
}

std::string Describe(const v1::Node& node, bool colour) {
  const std::string status = NodeStatus(node);
  Rows rows = {
      {"name", Printable(ShortName(node.name()))},
      {"status", colour ? Coloured(status, StateCode(status)) : status},
      {"last seen", FormatLocalTime(node.last_seen_time())},
      {"agent", node.agent_version().empty() ? "-" : Printable(node.agent_version())},
      {"metrics", node.metrics_address().empty() ? "-" : Printable(node.metrics_address())},
      {"labels", LabelsText(node.labels())}};
  for (const std::string& taint : node.taints()) rows.push_back({"taint", Printable(taint)});
  Rows devices = {{"DEVICE", "MODEL", "MEMORY", "SPEED", "SAMPLES/S", "JOB", "UUID", "FAULT"}};
  for (const v1::Device& device : node.devices()) {
    const double speed = device.emulated_speed();
    const double rate = device.samples_per_second();
    devices.push_back({Printable(device.name()), Printable(device.model()),
                       device.memory_bytes() > 0 ? FormatBytes(device.memory_bytes()) : "-",
                       speed > 0 ? "at " + FormatRate(speed) : "real",
                       rate > 0 ? FormatRate(rate) : "-", JobsText(device),
                       device.uuid().empty() ? "-" : Printable(device.uuid()),
                       device.fault().empty() ? "-" : Printable(device.fault())});
  }
  std::string text = FormatTable(rows);
  if (devices.size() > 1) text += Section("devices", FormatTable(devices));
  return text;
}

}  // namespace tactus::client
