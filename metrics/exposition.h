// How the metrics of a daemon are served.

#pragma once

#include <memory>
#include <string>

#include "runtime/http_server.h"

namespace tactus::metrics {

// The series of a process and the means to write them down; made by CoordinatorMetrics and
// AgentMetrics.
class MetricsRegistry;

// What a scrape would return now, in the text format 0.0.4.
std::string WriteText(const MetricsRegistry& registry);

// Has `server` answer /metrics with that. Before its Start.
void RouteMetrics(runtime::HttpServer& server,
                  const std::shared_ptr<const MetricsRegistry>& registry);

}  // namespace tactus::metrics
