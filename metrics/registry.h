// The series behind the daemons' metrics; the only header that shows prometheus-cpp.

#pragma once

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/exposition.h"
#include "metrics/source.h"

namespace tactus::metrics {

// Families are made by their names in the catalogue, which says the rest; a name that it does not
// have, or has as another kind, ends the process here, at the start.
class MetricsRegistry final : public prometheus::Collectable {
 public:
  // Declares tactus_build_info and the process's own at once.
  explicit MetricsRegistry(const std::string& version);

  prometheus::Family<prometheus::Gauge>& GaugeFamily(std::string_view name);
  prometheus::Family<prometheus::Counter>& CounterFamily(std::string_view name);
  prometheus::Family<prometheus::Histogram>& HistogramFamily(std::string_view name);

  // Before the first scrape. The source is shared with whoever sets its values.
  void Add(std::shared_ptr<MetricSource> source) { sources_.push_back(std::move(source)); }

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::Registry registry_;
  std::vector<std::shared_ptr<MetricSource>> sources_;
};

}  // namespace tactus::metrics
