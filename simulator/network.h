// The links of a simulated cluster: when a message that leaves now has arrived.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "simulator/cluster_model.h"

namespace tactus::simulator {

// When a message arrives that never does, and when one can leave that waits for such a message.
inline constexpr Instant kNever = Instant::max();

// When the first and the last byte of a message pass some point.
struct Stream {
  Instant first{};
  Instant last{};  // >= first
};

// One direction of a link: a queue of messages, first come (in the order of the calls), first
// served, behind a token bucket. Time spent idle is saved as credit, up to burst_bytes' worth;
// bytes leave at once while there is credit, then at bytes_per_second.
class Way {
 public:
  // What takes longer takes this long, and no queue lasts beyond it: a century, of which an Instant
  // holds nearly three.
  static constexpr Duration kTimeMax = Seconds(100 * 365 * 86400.0);

  explicit Way(const LinkModel& link);

  // Takes in a message that comes as `in`. Returns how it comes out at the other end: the last byte
  // leaves when it has come and the queue is through with it.
  Stream Pass(double bytes, Stream in) {
    const Instant begin = std::max(in.first, empty_from_);
    empty_from_ = Bounded(std::max(empty_from_, in.first - credit_) + TimeOf(bytes));
    bytes_ += bytes;
    return {begin + latency_, std::max(in.last, empty_from_) + latency_};
  }

  // The same, past the queue: neither waits for other messages nor holds them up.
  Stream PassAlone(double bytes, Stream in) {
    bytes_ += bytes;
    return {in.first + latency_, std::max(in.last, Bounded(in.first + TimeOf(bytes))) + latency_};
  }

  // Takes in many messages at once, of which only a bound is known: they are through no sooner than
  // `through`, the credit not counted. Returns when the last byte of all has arrived.
  Instant PassTogether(double bytes, Instant through, Instant last) {
    empty_from_ = Bounded(std::max(empty_from_ + TimeOf(bytes), through - credit_));
    bytes_ += bytes;
    return std::max(last, empty_from_) + latency_;
  }

  // Continues as if `bytes` had passed and the queue been through with them at `empty_from`.
  void Continue(double bytes, Instant empty_from) {
    empty_from_ = Bounded(std::max(empty_from_, empty_from));
    bytes_ += bytes;
  }

  // How long the bytes take without credit.
  Duration TimeOf(double bytes) const {
    constexpr auto kNanosecondsMax = static_cast<double>(kTimeMax.count());
    const double nanoseconds = std::min(bytes * nanoseconds_per_byte_, kNanosecondsMax);
    return Duration(static_cast<Duration::rep>(nanoseconds + 0.5));
  }

  double nanoseconds_per_byte() const { return nanoseconds_per_byte_; }
  Duration latency() const { return latency_; }
  Duration credit() const { return credit_; }  // that an idle way has saved up

  // Since when the bucket has no byte to send and saves up credit; may be in the past or future.
  Instant empty_from() const { return empty_from_; }

  double bytes() const { return bytes_; }  // that passed

 private:
  static Instant Bounded(Instant time) { return std::min(time, Instant{} + kTimeMax); }

  double nanoseconds_per_byte_;
  Duration credit_;
  Duration latency_;
  Instant empty_from_ = Instant(Duration::min() / 2);  // long ago, with room to subtract
  double bytes_ = 0;
};

// The ways that a message takes, one after the other.
struct Route {
  std::array<std::uint32_t, 3> ways{};  // indices for Network::way
  std::size_t length = 0;
};

// Every host has a way out and a way in, and one for messages between its own workers; every pair
// of groups with a link has a way there and a way back. Messages of all jobs share them. A message
// passes way out, group link and way in as a stream: it arrives when its last byte has passed the
// slowest, plus the latencies. A way out does not wait for a busy way in; the switch keeps what
// cannot be delivered yet.
//
// Messages must be sent in the order of the calls' meaning, not of their times: a call may name a
// `ready` before that of an earlier call, and then queues behind it all the same. One thread.
class Network {
 public:
  // Hosts are named by their index in `cluster.hosts`.
  explicit Network(const ClusterModel& cluster);

  // Sends `bytes` >= 0, ready to leave at `ready`, within 100 years or kNever. Returns when the
  // last byte has arrived; a message that never arrives passes no way.
  Instant Send(std::size_t from, std::size_t to, double bytes, Instant ready) {
    if (ready < blocked_until_ || ready == kNever) return SendLate(from, to, bytes, ready);
    return Pass(RouteOf(from, to), bytes, {ready, ready}).last;
  }

  // Messages from one host to another leave no sooner than `until`, within 100 years or kNever.
  // Later calls only extend. A message that is held back holds up no other: it passes alone when
  // its time has come.
  void Block(std::size_t from, std::size_t to, Instant until);

  // Until when messages from one host to another are held back.
  Instant BlockedUntil(std::size_t from, std::size_t to) const;

  // When the first of those that are held back at `time` goes on; kNever: none is, or for ever.
  Instant HealsAfter(Instant time) const;

  // No message that is ready then or later is held back.
  Instant blocked_until() const { return blocked_until_; }

  std::size_t hosts() const { return group_of_.size(); }
  std::size_t groups() const { return groups_; }
  std::size_t group_of(std::size_t host) const { return group_of_[host]; }

  Route RouteOf(std::size_t from, std::size_t to) const {
    if (from == to) return {.ways = {IndexOf(kLocal, from)}, .length = 1};
    const std::uint32_t between = between_[group_of_[from] * groups_ + group_of_[to]];
    if (between == kNone) return {.ways = {IndexOf(kOut, from), IndexOf(kIn, to)}, .length = 2};
    return {.ways = {IndexOf(kOut, from), between, IndexOf(kIn, to)}, .length = 3};
  }

  // What one host can send another while nobody else sends anything; 0: all at once. [bytes/s]
  double Rate(std::size_t from, std::size_t to) const {
    double nanoseconds = 0;
    const Route route = RouteOf(from, to);
    for (std::size_t i = 0; i < route.length; ++i) {
      nanoseconds = std::max(nanoseconds, ways_[route.ways[i]].nanoseconds_per_byte());
    }
    return nanoseconds > 0 ? 1e9 / nanoseconds : 0;
  }

  std::size_t ways() const { return ways_.size(); }
  Way& way(std::uint32_t index) { return ways_[index]; }
  Way& out(std::size_t host) { return ways_[IndexOf(kOut, host)]; }
  Way& in(std::size_t host) { return ways_[IndexOf(kIn, host)]; }
  Way& local(std::size_t host) { return ways_[IndexOf(kLocal, host)]; }
  Way* between(std::size_t from_group, std::size_t to_group) {  // null: nothing to share
    const std::uint32_t index = between_[from_group * groups_ + to_group];
    return index == kNone ? nullptr : &ways_[index];
  }

  // That left on ways out of hosts, so without messages within a host.
  double bytes_sent() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The ways that every host has, in the order in which ways_ holds them.
  enum Kind : std::size_t { kOut, kIn, kLocal };

  std::uint32_t IndexOf(Kind kind, std::size_t host) const {
    return static_cast<std::uint32_t>(kind * hosts() + host);
  }

  Stream Pass(const Route& route, double bytes, Stream stream) {
    for (std::size_t i = 0; i < route.length; ++i) {
      stream = ways_[route.ways[i]].Pass(bytes, stream);
    }
    return stream;
  }

  Instant SendLate(std::size_t from, std::size_t to, double bytes, Instant ready);
  void NameGroups(const ClusterModel& cluster);

  std::vector<Way> ways_;  // of all hosts out, in, local; then between groups
  std::vector<std::size_t> group_of_;
  std::size_t groups_ = 0;
  std::vector<std::uint32_t> between_;  // [groups, groups] indices of ways, or kNone
  std::map<std::pair<std::size_t, std::size_t>, Instant> blocked_;
  Instant blocked_until_ = Instant::min();
};

}  // namespace tactus::simulator
