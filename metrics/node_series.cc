#include "metrics/node_series.h"

namespace tactus::metrics {

void NodeSeries::Set(const std::string& node, const NodeFigures& figures) {
  const Instant now = clock_.now();
  const threads::MutexLock lock(mutex_);
  nodes_[node] = {.heard = now - figures.silence, .figures = figures, .lost = {}};
}

void NodeSeries::Lose(const std::string& node) {
  const Instant now = clock_.now();
  const threads::MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.lost = now;
}

void NodeSeries::Forget(const std::string& node) {
  const threads::MutexLock lock(mutex_);
  nodes_.erase(node);
}

void NodeSeries::Collect(MetricPage& page) {
  const Instant now = clock_.now();
  const threads::MutexLock lock(mutex_);
  std::erase_if(nodes_, [now](const auto& entry) {
    return entry.second.lost && now - *entry.second.lost >= kKept;
  });
  // A loop for each metric, as all values of one stand together on a page.
  for (const auto& [name, node] : nodes_) {
    page.Write("tactus_node_connected", {{"node", name}}, node.lost ? 0 : 1);
  }
  for (const auto& [name, node] : nodes_) {
    page.Write("tactus_agent_heartbeat_age_seconds", {{"node", name}}, ToSeconds(now - node.heard));
  }
  for (const auto& [name, node] : nodes_) {
    if (node.lost) continue;
    page.Write("tactus_node_cordoned", {{"node", name}}, node.figures.cordoned ? 1 : 0);
  }
  for (const auto& [name, node] : nodes_) {
    if (node.lost) continue;
    const NodeFigures& figures = node.figures;
    const std::size_t cordoned = figures.cordoned ? figures.free : 0;
    for (const auto& [state, count] :
         {std::pair("free", figures.free - cordoned), std::pair("busy", figures.busy),
          std::pair("cordoned", cordoned), std::pair("fault", figures.at_fault)}) {
      page.Write("tactus_node_devices", {{"node", name}, {"state", state}},
                 static_cast<double>(count));
    }
  }
}

}  // namespace tactus::metrics
