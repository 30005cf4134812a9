// What `tactus doctor --links` makes of the ways between nodes.

#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/local/doctor.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

// Nodes whose links are looked at, at most; each takes a second or so.
inline constexpr std::size_t kLinkNodesMax = 64;

// A ring through the nodes whose agents are connected, by name: each sends once and is sent to
// once, so that what is wrong with one shows. Of two, both directions; of fewer, none.
std::vector<std::pair<std::string, std::string>> LinksToProbe(const v1::ListNodesResponse& nodes);

struct LinkFound {
  std::string from{};
  std::string to{};
  absl::StatusOr<v1::ProbeLinkResponse> found{};
};

// Whether the coordinator lets the caller measure nothing: what it said; else ok.
absl::Status RefusalOf(const LinkFound& link);

// Nodes with agents of which LinksToProbe has no link, as there are more than kLinkNodesMax.
std::size_t NodesLeftOut(const v1::ListNodesResponse& nodes);

// What is wrong with each, and one line of all that were measured; one more where nodes were left
// out.
std::vector<Finding> JudgeLinks(const std::vector<LinkFound>& links, std::size_t left_out = 0);

}  // namespace tactus::client
