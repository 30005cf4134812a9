// What the process itself uses, under the names that Prometheus' client libraries share.

#pragma once

#include <string>
#include <utility>

#include "metrics/source.h"

namespace tactus::metrics {

// process_cpu_seconds_total and its like, read from /proc at each scrape; what cannot be read has
// no series.
class ProcessSource final : public MetricSource {
 public:
  void Collect(MetricPage& page) override;
};

// tactus_state_free_bytes and tactus_state_size_bytes, asked of the system at each scrape; no
// series where it does not answer.
class StateFolderSource final : public MetricSource {
 public:
  explicit StateFolderSource(std::string folder) : folder_(std::move(folder)) {}
  void Collect(MetricPage& page) override;

 private:
  const std::string folder_;
};

}  // namespace tactus::metrics
