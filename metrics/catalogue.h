// Every metric of coordinator and agent, declared once: families are made from here, and
// docs/metrics.md is written from here.

#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::metrics {

enum class MetricKind { kGauge, kCounter, kHistogram };

// Which daemons have it.
enum class MetricOf { kCoordinator, kAgent, kBoth };

// When a series goes.
enum class MetricLife {
  kProcess,  // with the process
  kJob,      // JobSeries::kKept after the end of its job
  kWorker,   // when its job has the worker no more, or does not train
  kNode,     // NodeSeries::kKept after its node was lost
  kWhile,    // when what it says is no longer so
};

struct MetricLabel {
  std::string_view name{};    // empty: none
  std::string_view values{};  // a closed set, "a|b"; where it starts with a space, what bounds it
};

// The words of a closed set, in its order; none where the label is missing or its set is open.
std::vector<std::string> ClosedSet(const MetricLabel& label);

struct MetricSpec {
  std::string_view name{};
  MetricKind kind = MetricKind::kGauge;
  MetricOf of = MetricOf::kCoordinator;
  MetricLife life = MetricLife::kProcess;
  std::array<MetricLabel, 4> labels{};
  std::string_view unit{};  // for people: "seconds", "samples"; "1" for facts
  std::string_view help{};  // a sentence
};

// In the order of docs/metrics.md.
std::span<const MetricSpec> MetricCatalogue();

// The metric of this name. Ends the process when there is none: names are constants of ours.
const MetricSpec& Spec(std::string_view name);

// Upper bounds of the buckets of histograms, in seconds.
//
// Rounds last from a millisecond (toys) to minutes (many local steps): 2.2 a bucket, so that a
// quantile read off them is at most half off. Writes last from 50 us (a fast flash disk) to seconds
// (a disk in trouble), and are finest where the alert is, between 10 and 500 ms.
inline constexpr std::array kRoundSecondsBounds = {0.001, 0.0022, 0.005, 0.01, 0.022, 0.05,
                                                   0.1,   0.22,   0.5,   1.,   2.2,   5.,
                                                   10.,   22.,    60.,   150., 600.};
inline constexpr std::array kWriteSecondsBounds = {
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1., 5.};

// docs/metrics.md, whole.
std::string MetricsPage();

}  // namespace tactus::metrics
