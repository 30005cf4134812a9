// Where Prometheus finds the agents: its HTTP service discovery.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tactus::telemetry {

// An agent, as the coordinator knows it.
struct AgentAddress {
  std::string node{};             // a checked name: [a-z0-9-.]
  std::string metrics_address{};  // as the agent said; outside input; empty: it serves none
  std::string peer{};             // of its stream, as gRPC writes it: "ipv4:10.0.0.5:41234"
};

// host:port at which others reach the agent's metrics.
//
// An agent that listens on all addresses of its host says "0.0.0.0:9101", which leads whoever asks
// to himself: the address from which it dials the coordinator stands for it. One that listens on
// its loopback alone is reached from its own host, so from another host than the coordinator's it
// has no target: the same address there would be somebody else.
//
// Nothing where there is none, or where what it said is no host:port.
std::optional<std::string> ScrapeTarget(const AgentAddress& agent);

// The answer to Prometheus: [{"targets": ["10.0.0.5:9101"], "labels": {"node": "a"}}, ...], an
// entry for each agent that has a target. The label is `node`, as on the coordinator's own series.
std::string ScrapeTargetsJson(const std::vector<AgentAddress>& agents);

}  // namespace tactus::telemetry
