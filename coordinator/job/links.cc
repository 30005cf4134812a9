#include "coordinator/job/links.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>

namespace tactus::job {
namespace {

constexpr double kRateMax = 1e15;  // whatever a worker or an agent says [bytes/s]

// A first plan follows from links where its synchronization does, and the job may begin with what
// others found. Of meshes nobody has tried whether it should.
bool GoesByLinks(const JobSettings& settings) {
  return !settings.kind.empty() && settings.adapt.synchronization.policy == "auto" &&
         settings.mesh_devices <= 1;
}

bool IsRate(double bytes_per_second) {
  return bytes_per_second >= 1 && bytes_per_second <= kRateMax;
}

std::map<std::string, std::size_t> MembersByNode(const std::vector<MemberRecord>& members) {
  std::map<std::string, std::size_t> counts;
  for (const MemberRecord& member : members) ++counts[member.node];
  return counts;
}

double KnownOf(const std::string& node, const Priors& priors) {
  return LinkOf(priors.Find(LinkKey(node)));
}

void Note(const std::string& node, double bytes_per_second, Priors& priors, Actions& actions) {
  const double known = KnownOf(node, priors);
  if (std::abs(bytes_per_second - known) <= kLinkNews * known) return;
  priors.Put(LinkKey(node), BytesOfLink(bytes_per_second), actions);
}

}  // namespace

std::string LinkKey(const std::string& node) { return "link-" + node; }

std::string BytesOfLink(double bytes_per_second) {
  return std::to_string(static_cast<std::uint64_t>(bytes_per_second));
}

double LinkOf(const std::string& bytes) {
  std::uint64_t rate = 0;
  const char* const end = bytes.data() + bytes.size();
  const auto read = std::from_chars(bytes.data(), end, rate);
  return read.ec == std::errc() && read.ptr == end ? static_cast<double>(rate) : 0;
}

void NoteProbe(const std::string& node, double bytes_per_second, Priors& priors, Actions& actions) {
  if (IsRate(bytes_per_second) && bytes_per_second > KnownOf(node, priors)) {
    Note(node, bytes_per_second, priors, actions);
  }
}

void NoteLinks(const std::vector<MemberRecord>& members, const std::vector<WorkerProgress>& workers,
               Priors& priors, Actions& actions) {
  const std::map<std::string, std::size_t> counts = MembersByNode(members);
  if (counts.size() < 2) return;
  for (std::size_t rank = 0; rank < workers.size() && rank < members.size(); ++rank) {
    const std::string& node = members[rank].node;
    const double rate = workers[rank].link_bytes_per_second;
    if (counts.at(node) == 1 && IsRate(rate)) Note(node, rate, priors, actions);
  }
}

std::vector<ProbeLink> UnknownLinks(const JobRecord& job, const Priors& priors) {
  if (!GoesByLinks(job.settings)) return {};
  std::vector<std::string> nodes;
  for (const MemberRecord& member : job.members) {
    if (std::ranges::find(nodes, member.node) == nodes.end()) nodes.push_back(member.node);
  }
  std::vector<ProbeLink> unknown;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() > 1; ++i) {
    const std::string& next = nodes[(i + 1) % nodes.size()];
    if (KnownOf(nodes[i], priors) == 0) {
      unknown.push_back({.from = next, .to = nodes[i]});
    }
  }
  return unknown;
}

double ExchangeSeconds(const Exchange& exchange, const Priors& priors) {
  const std::vector<MemberRecord>& members = exchange.job.members;
  const bool hosts_talk =
      exchange.transport == TransportKind::kTcp || exchange.transport == TransportKind::kStaged;
  if (!hosts_talk || !GoesByLinks(exchange.job.settings)) return 0;
  const double bytes = static_cast<double>(exchange.parameters) * sizeof(float);
  const auto all = static_cast<double>(members.size());
  double longest = 0;
  for (const auto& [node, count] : MembersByNode(members)) {
    const double rate = KnownOf(node, priors);
    if (rate == 0) return 0;
    const auto here = static_cast<double>(count);
    longest = std::max(longest, 2 * here * (all - here) / all * bytes / rate);
  }
  return longest;
}

}  // namespace tactus::job
