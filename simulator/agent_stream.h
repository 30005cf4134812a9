// A stream between an agent and the coordinator: what TCP makes of a network, and what is said.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/rng.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "protocol/allegiance.h"
#include "simulator/cluster_model.h"
#include "simulator/elementary.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {

// What an agent says: a worker's words, or its end, its devices' faults, or that it leaves.
using UpMessage =
    std::variant<job::WorkerSaid, job::WorkerExited, job::DeviceFaultsChanged, job::NodeLeaving>;

// What is written at once, after proto/tactus/agent/v1/session.proto. Neither Hello nor words: a
// heartbeat, or an acknowledgement alone.
struct FromAgent {
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  std::shared_ptr<const job::NodeJoined> hello{};  // in the first one,
  protocol::CoordinatorIdentity obeyed{};          // with this
  std::shared_ptr<const UpMessage> said{};         // shared with the agent's log
};
struct ToAgent {
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  std::optional<protocol::CoordinatorIdentity> welcome{};  // in the first one
  std::optional<job::Action> action{};
};

// One direction of a stream. Messages are heard in order and once each, until it ends: then what is
// under way is lost. Packets are delayed and overtake one another, which holds up those that are
// overtaken; while the way is cut they vanish, and are sent again when it is not. One thread.
template <typename Message>
class StreamWay : public std::enable_shared_from_this<StreamWay<Message>> {
 public:
  struct Listener {
    // The next comes after ReadOn().
    std::function<void(const Message& message)> hear;
    std::function<void()> ended;
  };

  // All outlive the way, and the scheduler every event of it. In a std::shared_ptr.
  StreamWay(Scheduler& scheduler, const ControlModel& model, Rng& rng, Listener listener)
      : scheduler_(scheduler), model_(model), rng_(rng), listener_(std::move(listener)) {}

  void Send(Message message) { Put(std::move(message)); }

  // The sender, or the network, ends it: nothing that is under way arrives but that.
  void End() {
    if (ended_) return;
    first_ += under_way_.size();
    under_way_.clear();
    Put(std::nullopt);
    ended_ = true;
  }

  // The listener is gone.
  void Drop() { dropped_ = ended_ = true; }

  void SetCut(bool cut) {
    cut_ = cut;
    if (cut) return;
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      if (!under_way_[i].arrived) Transmit(first_ + i);
    }
  }

  void ReadOn() {
    reading_ = true;
    Deliver();
  }

 private:
  struct Packet {
    std::optional<Message> message{};  // nothing: the end
    bool arrived = false;
  };

  void Put(std::optional<Message> message) {
    if (ended_) return;
    under_way_.push_back({.message = std::move(message)});
    Transmit(first_ + under_way_.size() - 1);
  }

  void Transmit(std::uint64_t number) {
    if (cut_) return;
    scheduler_.After(Delay(),
                     [self = this->shared_from_this(), number] { self->OnPacket(number); });
  }

  Duration Delay() {
    Duration delay = Seconds(model_.delay_seconds);
    if (model_.jitter_seconds > 0) {
      delay += Seconds(-model_.jitter_seconds * Logarithm(1 - rng_.Uniform()));
    }
    return delay;
  }

  void OnPacket(std::uint64_t number) {
    if (cut_ || number < first_ || number >= first_ + under_way_.size()) return;
    under_way_[number - first_].arrived = true;
    Deliver();
  }

  // Reading on from within hear() comes back here: the outer call goes on with the next one.
  void Deliver() {
    if (std::exchange(delivering_, true)) return;
    while (!dropped_ && !under_way_.empty() && under_way_.front().arrived &&
           (reading_ || !under_way_.front().message)) {
      const std::optional<Message> message = std::move(under_way_.front().message);
      under_way_.pop_front();
      ++first_;
      reading_ = false;
      if (message) {
        listener_.hear(*message);
      } else {
        listener_.ended();
      }
    }
    delivering_ = false;
  }

  Scheduler& scheduler_;
  const ControlModel& model_;
  Rng& rng_;
  const Listener listener_;
  std::deque<Packet> under_way_;  // numbers first_, first_ + 1, ...
  std::uint64_t first_ = 1;
  bool reading_ = true;
  bool delivering_ = false;
  bool cut_ = false;
  bool ended_ = false;    // by the sender
  bool dropped_ = false;  // by the listener
};

// From the dialling to the end. Shared by its two ends.
struct AgentStream {
  std::shared_ptr<StreamWay<FromAgent>> up{};
  std::shared_ptr<StreamWay<ToAgent>> down{};

  // The network ends it; both hear of that.
  void Break() const {
    up->End();
    down->End();
  }
};

}  // namespace tactus::simulator
