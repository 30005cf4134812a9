// What is known of nodes, and its series.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "metrics/source.h"
#include "threads/mutex.h"

namespace tactus::metrics {

// A node whose agent is connected, or may come back.
struct NodeFigures {
  Duration silence{};                            // since its agent was last heard
  std::size_t free = 0, busy = 0, at_fault = 0;  // devices; free: nobody sits on them
  bool cordoned = false;                         // so that free ones are not to be had
};

// All methods may be called from any thread. Bounded by whoever calls Set: the coordinator knows
// 16,384 nodes at most.
class NodeSeries final : public MetricSource {
 public:
  // How long a node that was lost is still seen, as not connected and ever longer unheard, so that
  // an alert about it is not over with the node.
  static constexpr Duration kKept = std::chrono::hours(1);

  explicit NodeSeries(MetricClock clock) : clock_(std::move(clock)) {}

  void Set(const std::string& node, const NodeFigures& figures);
  // Nothing for a node that was never set.
  void Lose(const std::string& node);
  // Its series end at once: it is of no concern to anybody any more.
  void Forget(const std::string& node);

  void Collect(MetricPage& page) override;

 private:
  struct Node {
    Instant heard{};
    NodeFigures figures{};
    std::optional<Instant> lost{};
  };

  const MetricClock clock_;
  threads::Mutex mutex_;  // the control thread sets, the scraper's thread reads
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::metrics
