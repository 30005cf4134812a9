#include "simulator/network.h"

#include <cmath>
#include <string>

#include "base/check.h"

namespace tactus::simulator {

namespace {

Duration RoundedSeconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

}  // namespace

Way::Way(const LinkModel& link)
    : nanoseconds_per_byte_(1e9 / link.bytes_per_second),
      credit_(TimeOf(link.burst_bytes)),
      latency_(RoundedSeconds(link.latency_seconds)) {
  TACTUS_CHECK(link.bytes_per_second > 0 && link.burst_bytes >= 0 && link.latency_seconds >= 0);
}

Network::Network(const ClusterModel& cluster) {
  for (const Kind kind : {kOut, kIn, kLocal}) {
    for (const HostModel& host : cluster.hosts) {
      ways_.emplace_back(kind == kLocal ? cluster.local : host.link);
    }
  }
  NameGroups(cluster);
}

void Network::NameGroups(const ClusterModel& cluster) {
  std::map<std::string, std::size_t> indices;
  for (const HostModel& host : cluster.hosts) {
    group_of_.push_back(indices.try_emplace(host.group, indices.size()).first->second);
  }
  groups_ = indices.size();
  between_.assign(groups_ * groups_, kNone);
  for (const GroupLink& link : cluster.between) {
    const auto a = indices.find(link.a);
    const auto b = indices.find(link.b);
    TACTUS_CHECK(a != indices.end() && b != indices.end() && a != b);
    for (const std::size_t pair :
         {a->second * groups_ + b->second, b->second * groups_ + a->second}) {
      between_[pair] = static_cast<std::uint32_t>(ways_.size());
      ways_.emplace_back(link.link);
    }
  }
}

void Network::Block(std::size_t from, std::size_t to, Instant until) {
  const auto [entry, is_new] = blocked_.try_emplace({from, to}, until);
  if (!is_new) entry->second = std::max(entry->second, until);
  blocked_until_ = std::max(blocked_until_, until);
}

Instant Network::BlockedUntil(std::size_t from, std::size_t to) const {
  const auto entry = blocked_.find({from, to});
  return entry == blocked_.end() ? Instant::min() : entry->second;
}

Instant Network::HealsAfter(Instant time) const {
  Instant first = kNever;
  if (blocked_until_ <= time) return first;
  for (const auto& [pair, until] : blocked_) {
    if (until > time) first = std::min(first, until);
  }
  return first;
}

Instant Network::SendLate(std::size_t from, std::size_t to, double bytes, Instant ready) {
  const Instant leaves = std::max(ready, BlockedUntil(from, to));
  if (leaves == kNever) return kNever;
  const Route route = RouteOf(from, to);
  Stream stream{leaves, leaves};
  if (leaves == ready) return Pass(route, bytes, stream).last;
  // Past the queues, which know no gaps: one that leaves late would hold up all that are sent after
  // this call, though they leave before it.
  for (std::size_t i = 0; i < route.length; ++i) {
    stream = ways_[route.ways[i]].PassAlone(bytes, stream);
  }
  return stream.last;
}

double Network::bytes_sent() const {
  double sum = 0;
  for (std::size_t host = 0; host < hosts(); ++host) sum += ways_[IndexOf(kOut, host)].bytes();
  return sum;
}

}  // namespace tactus::simulator
