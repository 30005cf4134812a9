// docs/metrics.md, from the catalogue.

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "base/time.h"
#include "metrics/catalogue.h"
#include "metrics/job_series.h"
#include "metrics/node_series.h"

namespace tactus::metrics {
namespace {

using enum MetricKind;
using enum MetricOf;
using enum MetricLife;

std::string_view WordOf(MetricKind kind) {
  switch (kind) {
    case kGauge:
      return "gauge";
    case kCounter:
      return "counter";
    case kHistogram:
      return "histogram";
  }
  return "";
}

std::string Minutes(Duration time) {
  return std::to_string(static_cast<int>(ToSeconds(time) / 60)) + " minutes";
}

std::string WordsOf(MetricLife life) {
  switch (life) {
    case kProcess:
      return "with the process";
    case kJob:
      return Minutes(JobSeries::kKept) + " after the job's end";
    case kWorker:
      return "when the job does without the worker";
    case kNode:
      return Minutes(NodeSeries::kKept) + " after the node was lost, or with its deletion";
    case kWhile:
      return "when it is no longer so";
  }
  return "";
}

std::string WordsOf(const MetricSpec& metric) {
  std::string words;
  for (const MetricLabel& label : metric.labels) {
    if (label.name.empty()) break;
    const bool closed = !label.values.starts_with(' ');
    words += (words.empty() ? "`" : "; `") + std::string(label.name) + "`:" + (closed ? " " : "") +
             absl::StrReplaceAll(std::string(label.values), {{"|", ", "}});
  }
  return words.empty() ? "—" : words;
}

std::string Row(const MetricSpec& metric) {
  return "| `" + std::string(metric.name) + "` | " + std::string(WordOf(metric.kind)) + " | " +
         std::string(metric.unit) + " | " + WordsOf(metric) + " | " + std::string(metric.help) +
         " | " + WordsOf(metric.life) + " |\n";
}

std::string Table(std::initializer_list<MetricOf> of) {
  std::string table =
      "| name | kind | unit | labels | what it says | goes |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const MetricSpec& metric : MetricCatalogue()) {
    if (std::ranges::find(of, metric.of) != of.end()) table += Row(metric);
  }
  return table;
}

std::string BoundsText(std::span<const double> bounds) {
  std::string text;
  for (const double bound : bounds) {
    std::string number = std::to_string(bound * 1e3);
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
    text += (text.empty() ? "" : ", ") + number;
  }
  return text + " ms";
}

// The page says them in words.
static_assert(JobSeries::kJobsMax == 1000 && JobSeries::kRanksMax == 256 &&
              JobSeries::kWorkersMax == 16384);

}  // namespace

std::string MetricsPage() {
  return "# Metrics\n\n"
         "Written from `metrics/catalogue.cc`; edit that. Coordinator and agents serve "
         "these at `/metrics` in Prometheus' text format; `docs/operations.md` says how to scrape, "
         "see and be alerted by them.\n\n"
         "Series are bounded: 1,000 jobs have them, the first 256 workers of each, and 16,384 "
         "workers of all jobs together. What the jobs and workers beyond lack is counted in "
         "`tactus_metrics_series_dropped_total`, once for each. A job has series from its first "
         "start on.\n\n"
         "Not to be had: rollbacks within an attempt, as nothing goes back while a group trains "
         "(between two attempts: `tactus_job_attempts_lost_total`), and the kind of collective as "
         "a "
         "label of its metrics, as reports of rounds do not say it (`tactus_job_aggregation_mode` "
         "says which one the plan asks for).\n\n"
         "## Both daemons\n\n" +
         Table({kBoth}) + "\n## Coordinator\n\n" + Table({kCoordinator}) + "\n## Agent\n\n" +
         Table({kAgent}) +
         "\n## Buckets\n\n"
         "`tactus_wal_fsync_seconds`: " +
         BoundsText(kWriteSecondsBounds) +
         ". The other histograms: " + BoundsText(kRoundSecondsBounds) + ".\n";
}

}  // namespace tactus::metrics
