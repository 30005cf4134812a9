#include "simulator/exchange.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace tactus::simulator {
namespace {

constexpr std::size_t kNowhere = SIZE_MAX;

// The last of many arrivals, also without those from any one host.
class LastArrival {
 public:
  void Add(std::size_t host, Instant last) {
    if (host != host_ && last > last_) {
      others_ = last_;
      host_ = host;
    }
    if (host == host_) {
      last_ = std::max(last_, last);
    } else {
      others_ = std::max(others_, last);
    }
  }

  Instant Without(std::size_t host) const { return host == host_ ? others_ : last_; }

 private:
  std::size_t host_ = kNowhere;
  Instant last_ = Instant::min();
  Instant others_ = Instant::min();
};

// The messages of one sender, which begin to come at a time.
struct Coming {
  Instant first{};
  std::size_t host = 0;  // the sender's
};

// When a queue is through with n messages that begin to come at known times, for any time that one
// takes it:
//
//   max over k of (first_k + (n - k) time),  k = 0 .. n - 1
//
// kept as the upper hull of these n lines.
class Backlog {
 public:
  // Of the messages of all hosts but one. comings [>= 1], in the order of service.
  void Build(std::span<const Coming> comings, std::size_t without_host) {
    lines_.clear();
    start_ = comings.front().first;
    messages_ = 0;
    for (std::size_t k = comings.size(); k-- > 0;) {
      if (comings[k].host == without_host) continue;
      Line line{.messages = ++messages_,
                .offset = static_cast<double>((comings[k].first - start_).count())};
      while (!lines_.empty()) {
        const Line& below = lines_.back();
        line.leads_from = (below.offset - line.offset) / (line.messages - below.messages);
        if (line.leads_from > below.leads_from) break;
        lines_.pop_back();
      }
      if (lines_.empty()) line.leads_from = -1;
      lines_.push_back(line);
    }
  }

  // When it is through with them if they take `time` altogether; there is at least one.
  Instant Through(Duration time) const {
    const double each = static_cast<double>(time.count()) / messages_;
    const auto above =
        std::partition_point(lines_.begin() + 1, lines_.end(),
                             [each](const Line& line) { return line.leads_from <= each; });
    const Line& line = *(above - 1);
    return start_ + Duration(static_cast<Duration::rep>(line.offset + line.messages * each));
  }

 private:
  struct Line {
    double messages = 0;
    double offset = 0;       // [ns] since start_
    double leads_from = -1;  // [ns] from this time a message on it is above the lines before it
  };

  Instant start_{};
  double messages_ = 0;
  std::vector<Line> lines_;
};

// Sorts items by an instant of theirs; items of the same keep their order.
template <typename Item, typename InstantOf>
void SortByInstant(std::vector<Item>& items, const InstantOf& instant_of) {
  const auto sooner = [&](const Item& a, const Item& b) { return instant_of(a) < instant_of(b); };
  if (!std::is_sorted(items.begin(), items.end(), sooner)) {
    std::stable_sort(items.begin(), items.end(), sooner);
  }
}

// The indices 0 .. count - 1 in the order of their instants.
template <typename InstantOf>
std::vector<std::size_t> OrderBy(std::size_t count, const InstantOf& instant_of) {
  std::vector<std::pair<Instant, std::size_t>> keyed(count);
  for (std::size_t i = 0; i < count; ++i) keyed[i] = {instant_of(i), i};
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = keyed[i].second;
  return order;
}

// A fan on its way between the hosts.
struct Departure {
  const Fan* fan = nullptr;
  Stream left{};
};

// At the receiver's way in.
struct Message {
  std::size_t receiver = 0;  // rank
  double bytes = 0;
  Stream stream{};
};

// Whether a message of the fan does not leave with the others.
bool GoesAlone(const Fan& fan, std::size_t from, std::size_t to, const Network& network) {
  if (to == from || fan.ready == kNever) return true;
  return fan.ready < network.blocked_until() && network.BlockedUntil(from, to) > fan.ready;
}

// Sends what goes alone, and returns how the others leave the host.
Stream Leave(std::span<const std::size_t> hosts, const Fan& fan, std::span<Instant> arrived,
             Network& network) {
  const std::size_t from = hosts[fan.sender];
  double together = 0;
  for (const std::size_t rank : fan.receivers) {
    if (rank == fan.sender) continue;
    if (!GoesAlone(fan, from, hosts[rank], network)) {
      ++together;
      continue;
    }
    arrived[rank] = std::max(arrived[rank], network.Send(from, hosts[rank], fan.bytes, fan.ready));
  }
  const Stream stream{fan.ready, fan.ready};
  return together > 0 ? network.out(from).Pass(fan.bytes * together, stream) : stream;
}

class ExchangeOfLoads {
 public:
  ExchangeOfLoads(const Exchange& exchange, Network& network)
      : exchange_(exchange),
        network_(network),
        senders_(network.hosts()),
        receivers_(network.hosts()),
        group_receivers_(network.groups()),
        arrived_(network.hosts(), Instant::min()) {
    for (std::size_t rank = 0; rank < exchange.hosts.size(); ++rank) {
      const std::size_t host = exchange.hosts[rank];
      ++senders_[host];
      if (rank == exchange.spared) continue;
      ++receivers_[host];
      ++group_receivers_[network.group_of(host)];
      ++all_receivers_;
    }
  }

  void Run(std::span<Instant> times) {
    Leave(times);
    for (std::size_t group = 0; group < network_.groups(); ++group) {
      if (group_receivers_[group] > 0) Arrive(group);
    }
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      if (rank == exchange_.spared) continue;
      times[rank] = std::max(times[rank], arrived_[exchange_.hosts[rank]]);
    }
  }

 private:
  void Leave(std::span<const Instant> times) {
    left_.reserve(times.size());
    for (const std::size_t rank : OrderBy(times.size(), [&](std::size_t i) { return times[i]; })) {
      const std::size_t host = exchange_.hosts[rank];
      const Stream stream{times[rank], times[rank]};
      const double away = all_receivers_ - receivers_[host];
      const double within = receivers_[host] - (rank == exchange_.spared ? 0 : 1);
      left_.push_back(
          {.stream = network_.out(host).Pass(exchange_.bytes * away, stream), .host = host});
      if (within <= 0) continue;
      const Stream arrived = network_.local(host).Pass(exchange_.bytes * within, stream);
      arrived_[host] = std::max(arrived_[host], arrived.last);
    }
    SortByInstant(left_, [](const Left& left) { return left.stream.first; });
  }

  void Arrive(std::size_t group) {
    LastArrival last;
    comings_.clear();
    for (const Left& left : left_) {
      Stream stream = left.stream;
      if (Way* const shared = network_.between(network_.group_of(left.host), group)) {
        stream = shared->Pass(exchange_.bytes * group_receivers_[group], stream);
      }
      comings_.push_back({.first = stream.first, .host = left.host});
      last.Add(left.host, stream.last);
    }
    SortByInstant(comings_, [](const Coming& coming) { return coming.first; });
    // To the host of the last to begin, its own messages would make the greatest difference.
    const std::size_t latest = comings_.back().host;
    backlog_.Build(comings_, kNowhere);
    for (std::size_t host = 0; host < network_.hosts(); ++host) {
      if (host != latest && network_.group_of(host) == group) TakeIn(host, last);
    }
    if (network_.group_of(latest) != group) return;
    backlog_.Build(comings_, latest);
    TakeIn(latest, last);
  }

  // What all members of other hosts send to those of this one.
  void TakeIn(std::size_t host, const LastArrival& last) {
    const double messages = receivers_[host] * (static_cast<double>(left_.size()) - senders_[host]);
    if (messages <= 0) return;
    Way& in = network_.in(host);
    const double bytes = exchange_.bytes * messages;
    const Instant through = backlog_.Through(in.TimeOf(bytes));
    const Instant arrived = in.PassTogether(bytes, through, last.Without(host));
    arrived_[host] = std::max(arrived_[host], arrived);
  }

  // The messages of one member, out of its host.
  struct Left {
    Stream stream{};
    std::size_t host = 0;
  };

  const Exchange& exchange_;
  Network& network_;
  std::vector<double> senders_;          // [hosts]
  std::vector<double> receivers_;        // [hosts]
  std::vector<double> group_receivers_;  // [groups]
  double all_receivers_ = 0;
  std::vector<Left> left_;
  std::vector<Coming> comings_;  // of the group under way
  Backlog backlog_;
  std::vector<Instant> arrived_;  // [hosts]
};

}  // namespace

void SendFans(std::span<const std::size_t> hosts, std::span<const Fan> fans,
              std::span<Instant> arrived, Network& network) {
  std::vector<Departure> departures;
  for (const std::size_t i : OrderBy(fans.size(), [&](std::size_t k) { return fans[k].ready; })) {
    departures.push_back({.fan = &fans[i], .left = Leave(hosts, fans[i], arrived, network)});
  }
  SortByInstant(departures, [](const Departure& departure) { return departure.left.first; });
  std::vector<Message> messages;
  for (const Departure& departure : departures) {
    const Fan& fan = *departure.fan;
    const std::size_t from = hosts[fan.sender];
    for (const std::size_t rank : fan.receivers) {
      if (GoesAlone(fan, from, hosts[rank], network)) continue;
      Stream stream = departure.left;
      if (Way* const shared =
              network.between(network.group_of(from), network.group_of(hosts[rank]))) {
        stream = shared->Pass(fan.bytes, stream);
      }
      messages.push_back({.receiver = rank, .bytes = fan.bytes, .stream = stream});
    }
  }
  SortByInstant(messages, [](const Message& message) { return message.stream.first; });
  for (const Message& message : messages) {
    Instant& last = arrived[message.receiver];
    last = std::max(last,
                    network.in(hosts[message.receiver]).Pass(message.bytes, message.stream).last);
  }
}

void ExchangeByMessages(const Exchange& exchange, std::span<Instant> times, Network& network) {
  std::vector<std::size_t> receivers(times.size());
  std::iota(receivers.begin(), receivers.end(), std::size_t{0});
  if (exchange.spared) std::erase(receivers, *exchange.spared);
  std::vector<Fan> fans;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    fans.push_back(
        {.sender = rank, .receivers = receivers, .bytes = exchange.bytes, .ready = times[rank]});
  }
  SendFans(exchange.hosts, fans, times, network);
}

void ExchangeByLoads(const Exchange& exchange, std::span<Instant> times, Network& network) {
  ExchangeOfLoads(exchange, network).Run(times);
}

}  // namespace tactus::simulator
