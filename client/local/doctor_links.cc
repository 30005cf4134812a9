#include "client/local/doctor_links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/time.h"
#include "client/text/text.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

constexpr double kSlow = 12.5e6;       // [B/s], 100 Mbit/s: a model of 10 MB takes a second a round
constexpr double kSlowerThan = 0.5;    // of the middle of all
constexpr double kFarSeconds = 0.005;  // [s] a round trip, of which a round has several
constexpr char kHasWorkers[] = "NODE_HAS_WORKERS";
constexpr std::size_t kCompared = 3;  // links, for one to be called slower than the others

double RoundTripOf(const v1::ProbeLinkResponse& found) {
  return static_cast<double>(found.round_trip().seconds()) + found.round_trip().nanos() * 1e-9;
}

std::string LinkSpeed(double bytes_per_second) {
  return FormatBytes(static_cast<std::uint64_t>(bytes_per_second)) + "/s";
}

std::string MillisecondsText(double seconds) {
  char text[32] = "";
  std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  return text;
}

std::string FiguresOf(const v1::ProbeLinkResponse& found) {
  return LinkSpeed(found.bytes_per_second()) + ", " + MillisecondsText(RoundTripOf(found)) +
         " there and back";
}

// Of those that were measured; 0: none was.
double MiddleSpeed(std::vector<double> speeds) {
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::ranges::nth_element(speeds, middle);
  return *middle;
}

std::optional<Finding> JudgeLink(const LinkFound& link, double middle, bool compared) {
  const std::string subject = "link " + Printable(link.from) + " to " + Printable(link.to);
  if (!link.found.ok()) {
    return Finding{
        .grade = Grade::kLook,
        .subject = subject,
        .found = "not measured: " + Printable(std::string(link.found.status().message())),
        .advice = runtime::ReasonOf(link.found.status()).reason == kHasWorkers
                      ? "--while-training measures it beside the job, for a second"
                      : ""};
  }
  const v1::ProbeLinkResponse& found = *link.found;
  if (!found.error().empty()) {
    return Finding{.grade = Grade::kBad,
                   .subject = subject,
                   .found = Printable(found.error()),
                   .advice =
                       "workers of the two would not meet: open the ports between the nodes, "
                       "and give each agent an --address that the others reach"};
  }
  const double speed = found.bytes_per_second();
  if (compared && speed < kSlowerThan * middle) {
    return Finding{.grade = Grade::kLook,
                   .subject = subject,
                   .found = FiguresOf(found) + ", where the middle of all is " + LinkSpeed(middle),
                   .advice =
                       "a job across it goes at its pace: look at its cable and port, or keep "
                       "jobs apart by labels (workers.selector)"};
  }
  if (speed < kSlow || RoundTripOf(found) > kFarSeconds) {
    return Finding{.grade = Grade::kLook,
                   .subject = subject,
                   .found = FiguresOf(found),
                   .advice =
                       "rounds that wait for it are hidden by local steps or a delay, and "
                       "made shorter by an encoding (adapt.synchronization, adapt.encoding)"};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> LinksToProbe(const v1::ListNodesResponse& nodes) {
  std::vector<std::string> names;
  for (const v1::Node& node : nodes.nodes()) {
    if (node.connected() && names.size() < kLinkNodesMax) names.push_back(ShortName(node.name()));
  }
  std::vector<std::pair<std::string, std::string>> links;
  for (std::size_t i = 0; names.size() > 1 && i < names.size(); ++i) {
    links.emplace_back(names[i], names[(i + 1) % names.size()]);
  }
  return links;
}

absl::Status RefusalOf(const LinkFound& link) {
  const absl::Status& status = link.found.status();
  const bool refused = absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
  return refused ? status : absl::OkStatus();
}

std::size_t NodesLeftOut(const v1::ListNodesResponse& nodes) {
  const auto connected = static_cast<std::size_t>(
      std::ranges::count_if(nodes.nodes(), [](const v1::Node& node) { return node.connected(); }));
  return connected - std::min(connected, kLinkNodesMax);
}

std::vector<Finding> JudgeLinks(const std::vector<LinkFound>& links, std::size_t left_out) {
  if (links.empty()) {
    return {{.subject = "links", .found = "none to measure: fewer than two agents are connected"}};
  }
  std::vector<double> speeds;
  for (const LinkFound& link : links) {
    if (link.found.ok() && link.found->error().empty()) {
      speeds.push_back(link.found->bytes_per_second());
    }
  }
  const double middle = MiddleSpeed(speeds);
  std::vector<Finding> findings;
  for (const LinkFound& link : links) {
    std::optional<Finding> finding = JudgeLink(link, middle, speeds.size() >= kCompared);
    if (finding) findings.push_back(*std::move(finding));
  }
  if (left_out > 0) {
    findings.insert(findings.begin(), {.grade = Grade::kLook,
                                       .subject = "links",
                                       .found = CountOf(left_out, "node") + " left out, as " +
                                                std::to_string(kLinkNodesMax) + " are looked at"});
  }
  if (speeds.empty()) return findings;
  const auto [slowest, fastest] = std::ranges::minmax(speeds);
  findings.insert(findings.begin(), {.subject = "links",
                                     .found = CountOf(speeds.size(), "link") + " measured, " +
                                              LinkSpeed(slowest) + " to " + LinkSpeed(fastest)});
  return findings;
}

}  // namespace tactus::client
