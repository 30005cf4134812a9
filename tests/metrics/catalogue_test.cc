#include "metrics/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "metrics/agent_metrics.h"
#include "metrics/coordinator_metrics.h"

namespace tactus::metrics {
namespace {

std::string Page() { return std::string(std::getenv("TACTUS_SOURCE")) + "/docs/metrics.md"; }

// A coordinator of which every metric has a series.
std::string FullScrape(CoordinatorMetrics& metrics) {
  metrics.SetQueueOldest(1);
  metrics.SetBackups(std::chrono::hours(6), 1.8e9);
  metrics.CountCall("Jobs/GetJob", "OK");
  metrics.WatchFolder("/");
  metrics.nodes().Set("a", {.free = 1});
  const JobId job = {1};
  metrics.jobs().Add(job, "demo-1");
  metrics.jobs().Set(job, {.state = "running",
                           .loss = 1,
                           .rounds = 1,
                           .samples_per_second = 1,
                           .epoch_progress_ratio = 0.5,
                           .eta_seconds = 1,
                           .synchronization = "periodic",
                           .aggregation = "adasum",
                           .learning_rate_rule = "sqrt",
                           .encoding = "float16",
                           .workers = {{.link_bytes_per_second = 1}},
                           .validation = ValidationFigures{.accuracy = 0.5},
                           .best_validation_loss = 1});
  metrics.jobs().SetPlaces(job, {{.node = "a", .device = "cpu:0"}});
  metrics.jobs().SetRound(job, {.orthogonality_ratio = 1, .noise_scale = 1});
  metrics.jobs().SetDecision(job, {.kind = "batch", .predicted_gain_ratio = 1});
  metrics.jobs().SetDecision(
      job, {.kind = "batch", .predicted_gain_ratio = 1, .measured_gain_ratio = 1});
  metrics.jobs().SetCheckpoint(job);
  return WriteText(*metrics.registry());
}

std::string FullScrape(AgentMetrics& metrics) {
  metrics.SetGpu({.index = 0,
                  .uuid = "GPU-0",
                  .model = "A model",
                  .utilization_ratio = 1,
                  .memory_used_bytes = 1,
                  .temperature_celsius = 1,
                  .power_watts = 1,
                  .sm_clock_hertz = 1,
                  .uncorrected_ecc_errors = 1,
                  .throttle_reasons = {"software power cap"}});
  return WriteText(*metrics.registry());
}

// Holds every line of a scrape against the catalogue; returns the metrics that had a series.
std::set<std::string> Check(const std::string& scrape) {
  static const std::regex kLine(R"re(([a-z_]+)(?:\{(.*)\})? \S+)re");
  static const std::regex kLabel("([a-z_]+)=\"([^\"]*)\"");
  std::set<std::string> seen;
  std::istringstream lines(scrape);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::smatch parts;
    EXPECT_TRUE(std::regex_match(line, parts, kLine)) << line;
    std::string name = std::regex_replace(parts[1].str(), std::regex("_(bucket|count|sum)$"), "");
    seen.insert(name);
    const MetricSpec& spec = Spec(name);
    const std::string labels = parts[2];
    std::size_t count = 0;
    for (auto at = std::sregex_iterator(labels.begin(), labels.end(), kLabel);
         at != std::sregex_iterator(); ++at) {
      if ((*at)[1] == "le") continue;
      ++count;
      const auto label = std::ranges::find(spec.labels, (*at)[1].str(), &MetricLabel::name);
      EXPECT_NE(label, spec.labels.end()) << line;
      if (label == spec.labels.end() || label->values.starts_with(' ')) continue;
      EXPECT_THAT(ClosedSet(*label), testing::Contains((*at)[2].str())) << line;
    }
    const auto declared = std::ranges::count_if(
        spec.labels, [](const MetricLabel& label) { return !label.name.empty(); });
    EXPECT_EQ(count, static_cast<std::size_t>(declared)) << line;
  }
  return seen;
}

std::set<std::string> Declared(MetricOf of) {
  std::set<std::string> names;
  for (const MetricSpec& spec : MetricCatalogue()) {
    if (spec.of == of || spec.of == MetricOf::kBoth) names.emplace(spec.name);
  }
  return names;
}

TEST(MetricsCatalogueTest, EveryMetricOfTheCoordinatorIsExportedAsDeclared) {
  CoordinatorMetrics metrics("1");

  EXPECT_EQ(Check(FullScrape(metrics)), Declared(MetricOf::kCoordinator));
}

TEST(MetricsCatalogueTest, EveryMetricOfTheAgentIsExportedAsDeclared) {
  AgentMetrics metrics("1");

  EXPECT_EQ(Check(FullScrape(metrics)), Declared(MetricOf::kAgent));
}

TEST(MetricsCatalogueTest, AClosedSetIsItsWordsInTheirOrder) {
  EXPECT_THAT(ClosedSet({"phase", "write|store"}), testing::ElementsAre("write", "store"));
  EXPECT_THAT(ClosedSet({"phase", "write"}), testing::ElementsAre("write"));
  EXPECT_THAT(ClosedSet({"node", " of the worker"}), testing::IsEmpty());
  EXPECT_THAT(ClosedSet({}), testing::IsEmpty());
}

TEST(MetricsCatalogueTest, NamesFollowThePrometheusConventions) {
  std::set<std::string_view> names;
  for (const MetricSpec& spec : MetricCatalogue()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is declared twice";
    EXPECT_TRUE(spec.name.starts_with("tactus_") || spec.name.starts_with("process_"));
    EXPECT_EQ(spec.kind == MetricKind::kCounter, spec.name.ends_with("_total")) << spec.name;
    if (spec.unit == "seconds" && spec.kind != MetricKind::kCounter) {
      EXPECT_TRUE(spec.name.ends_with("_seconds")) << spec.name;
    }
    EXPECT_EQ(spec.unit == "ratio", spec.name.ends_with("_ratio")) << spec.name;
    if (spec.unit == "bytes") {
      EXPECT_THAT(std::string(spec.name), testing::HasSubstr("_bytes"));
    }
    EXPECT_TRUE(spec.help.ends_with('.')) << spec.name;
    for (const MetricLabel& label : spec.labels) {
      EXPECT_TRUE(label.name != "job" && label.name != "instance") << "Prometheus owns these";
    }
  }
}

// TACTUS_REWRITE_GOLDEN=1 writes the page anew.
TEST(MetricsCatalogueTest, ThePageIsWhatTheCatalogueSays) {
  const std::string page = MetricsPage();
  if (std::getenv("TACTUS_REWRITE_GOLDEN") != nullptr) std::ofstream(Page()) << page;
  std::ifstream in(Page());

  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), page)
      << "run this test with TACTUS_REWRITE_GOLDEN=1";
}

}  // namespace
}  // namespace tactus::metrics
