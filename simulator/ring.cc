#include "simulator/ring.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tactus::simulator {
namespace {

// How often it is looked whether all further steps are alike.
constexpr std::size_t kStepsBetweenLooks = 32;

// From a rank to the next. Instants are the sender's: when a byte left that is at the queue.
struct Edge {
  Duration step_time{};  // of the queue for all messages of a step
  Duration lead{};       // what an idle queue has saved up, less the time of one message
  Duration latency{};
  Instant empty_from{};
};

// When a rank sends next, in the order of time.
using Sending = std::pair<Instant, std::size_t>;

class RingOfLoads {
 public:
  RingOfLoads(const RingSteps& ring, Network& network)
      : ring_(ring), network_(network), loads_(network.ways()) {
    const std::size_t members = ring.hosts.size();
    for (std::size_t rank = 0; rank < members; ++rank) {
      routes_.push_back(network.RouteOf(ring.hosts[rank], ring.hosts[(rank + 1) % members]));
      for (std::size_t i = 0; i < routes_.back().length; ++i) ++loads_[routes_.back().ways[i]];
    }
    for (const Route& route : routes_) edges_.push_back(EdgeOf(route));
  }

  void Run(std::span<Instant> times) {
    now_.assign(times.begin(), times.end());
    next_ = now_;
    for (std::size_t step = 1; step <= ring_.steps; ++step) {
      const bool look = step % kStepsBetweenLooks == 2;  // the first starts the queues
      if (look) edges_before_ = edges_;
      Step();
      const Duration shift = now_.front() - next_.front();
      if (!look || !AllMovedBy(shift)) continue;
      MoveAllBy(shift * static_cast<Duration::rep>(ring_.steps - step));
      break;
    }
    std::copy(now_.begin(), now_.end(), times.begin());
    for (std::size_t rank = 0; rank < times.size(); ++rank) Settle(rank);
  }

 private:
  // The time of a step's messages on a way; all steps together last no longer than a way can.
  Duration TimeOf(std::uint32_t way, std::uint32_t messages) const {
    const auto steps = static_cast<Duration::rep>(std::max<std::size_t>(ring_.steps, 1));
    const Duration time = network_.way(way).TimeOf(ring_.bytes * static_cast<double>(messages));
    return std::min(time, Way::kTimeMax / steps);
  }
  Duration StepTime(std::uint32_t way) const { return TimeOf(way, loads_[way]); }

  Edge EdgeOf(const Route& route) {
    Edge edge;
    Duration own{};
    Duration credit{};
    for (std::size_t i = 0; i < route.length; ++i) {
      const Way& way = network_.way(route.ways[i]);
      const Duration time = StepTime(route.ways[i]);
      if (i == 0 || time > edge.step_time) credit = way.credit();
      if (time == edge.step_time) credit = std::min(credit, way.credit());
      edge.step_time = std::max(edge.step_time, time);
      own = std::max(own, TimeOf(route.ways[i], 1));
      const Instant empty_from = way.empty_from() - edge.latency;
      edge.empty_from = i == 0 ? empty_from : std::max(edge.empty_from, empty_from);
      edge.latency += way.latency();
    }
    edge.lead = credit - own;
    return edge;
  }

  // By value, so that it compiles to no branch: Step takes half as long as with std::max.
  static Instant Later(Instant a, Instant b) { return a < b ? b : a; }

  // Leaves the times of before in next_.
  void Step() {
    std::size_t rank = edges_.size() - 1;
    for (std::size_t receiver = 0; receiver < edges_.size(); rank = receiver++) {
      Edge& edge = edges_[rank];
      const Instant sent = now_[rank];
      edge.empty_from = Later(edge.empty_from + edge.step_time, sent - edge.lead);
      next_[receiver] = Later(now_[receiver], Later(sent, edge.empty_from) + edge.latency);
    }
    now_.swap(next_);
  }

  bool AllMovedBy(Duration shift) const {
    for (std::size_t rank = 0; rank < edges_.size(); ++rank) {
      if (now_[rank] - next_[rank] != shift) return false;
      if (edges_[rank].empty_from - edges_before_[rank].empty_from != shift) return false;
    }
    return true;
  }

  void MoveAllBy(Duration shift) {
    for (Instant& time : now_) time += shift;
    for (Edge& edge : edges_) edge.empty_from += shift;
  }

  // Leaves the ways of an edge with what they carried, and none busier than the queue.
  void Settle(std::size_t rank) {
    const Route& route = routes_[rank];
    const double bytes = ring_.bytes * static_cast<double>(ring_.steps);
    Instant empty_from = edges_[rank].empty_from;
    for (std::size_t i = 0; i < route.length; ++i) {
      Way& way = network_.way(route.ways[i]);
      way.Continue(bytes, empty_from - (edges_[rank].step_time - StepTime(route.ways[i])));
      empty_from += way.latency();
    }
  }

  const RingSteps& ring_;
  Network& network_;
  std::vector<std::uint32_t> loads_;  // [ways] messages a step
  std::vector<Route> routes_;         // [members]
  std::vector<Edge> edges_;           // [members]
  std::vector<Edge> edges_before_;    // the step looked at
  std::vector<Instant> now_;          // [members] when each member has received, in this step
  std::vector<Instant> next_;
};

}  // namespace

void RingByMessages(const RingSteps& ring, std::span<Instant> times, Network& network) {
  const std::size_t members = ring.hosts.size();
  std::vector<std::size_t> received(members);
  std::vector<Sending> heap;
  for (std::size_t rank = 0; rank < members; ++rank) heap.push_back({times[rank], rank});
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto [ready, rank] = heap.back();
    heap.pop_back();
    const std::size_t receiver = (rank + 1) % members;
    const Instant arrived = network.Send(ring.hosts[rank], ring.hosts[receiver], ring.bytes, ready);
    times[receiver] = std::max(times[receiver], arrived);
    if (++received[receiver] == ring.steps) continue;
    heap.push_back({times[receiver], receiver});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

void RingByLoads(const RingSteps& ring, std::span<Instant> times, Network& network) {
  RingOfLoads(ring, network).Run(times);
}

}  // namespace tactus::simulator
