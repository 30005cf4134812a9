// The prometheus registry behind runtime/metrics.h; the only header that shows prometheus-cpp.

#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "runtime/metrics.h"

namespace tactus::runtime {

class MetricsRegistry {
 public:
  // Declares tactus_build_info at once. Names are constants of ours, so a bad one ends the process
  // here, at the start.
  explicit MetricsRegistry(const std::string& version);

  prometheus::Family<prometheus::Gauge>& GaugeFamily(const std::string& name,
                                                     const std::string& help);
  prometheus::Family<prometheus::Counter>& CounterFamily(const std::string& name,
                                                         const std::string& help);
  prometheus::Registry& registry() { return *registry_; }
  const std::shared_ptr<prometheus::Registry>& shared() const { return registry_; }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;  // shared with the exposer
};

}  // namespace tactus::runtime
