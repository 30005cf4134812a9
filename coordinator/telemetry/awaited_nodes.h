// Nodes whose workers a former coordinator left running, until they are back or given up.

#pragma once

#include <set>
#include <string>

#include "coordinator/job/records.h"
#include "metrics/coordinator_metrics.h"

namespace tactus::telemetry {

// No agent's session knows such a node, so that one that never comes back would have no series, and
// be no loss. One thread.
class AwaitedNodes {
 public:
  // `metrics` outlives this.
  explicit AwaitedNodes(metrics::CoordinatorMetrics& metrics) : metrics_(metrics) {}

  // The job was taken up: if it waits for the return of its members, their nodes are awaited, and
  // unheard from now on.
  void Await(const job::JobRecord& record);

  // The node is here: its session says what is to be said from now on.
  void Joined(const std::string& node) { awaited_.erase(node); }

  bool Awaits(const std::string& node) const { return awaited_.contains(node); }

  // Those that are still awaited are lost.
  void GiveUp();

 private:
  metrics::CoordinatorMetrics& metrics_;
  std::set<std::string> awaited_;
};

}  // namespace tactus::telemetry
