// Where series come from that are kept as plain values until somebody scrapes.

#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "runtime/now.h"

namespace tactus::metrics {

// The clocks that series need; others in tests.
struct MetricClock {
  std::function<Instant()> now = runtime::Now;
  std::function<std::int64_t()> wall = runtime::WallNow;  // [ns] since 1970
};

// What a scrape returns, as it is written down.
class MetricPage {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  virtual ~MetricPage() = default;

  // One value of a metric of the catalogue, gauge or counter, with its labels.
  virtual void Write(std::string_view metric, std::initializer_list<Label> labels,
                     double value) = 0;
};

class MetricSource {
 public:
  virtual ~MetricSource() = default;

  // Writes all it has. Values of one metric one after the other. Any thread.
  virtual void Collect(MetricPage& page) = 0;
};

}  // namespace tactus::metrics
