// One direction of an agent's session with the coordinator: messages are handled once and in order,
// whatever the network does to them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/rng.h"
#include "base/time.h"
#include "simulator/cluster_model.h"
#include "simulator/elementary.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {

// Messages are numbered from 1 and kept until acknowledged. Packets are delayed, may arrive twice
// and overtake one another, and are lost while the channel is cut; the receiving end puts them in
// order and hands over the next one when the last one is acknowledged, so that who is busy is not
// talked at. After a break everything that the other side has not handled is sent again. The model
// of proto/tactus/agent/v1/session.proto. One thread.
template <typename Message>
class ControlChannel {
 public:
  // Kept at once, as agent::OutboundLogOptions::entries_max.
  static constexpr std::size_t kEntriesMax = 200'000;

  using Deliver = std::function<void(std::uint64_t sequence, const Message& message)>;

  // The scheduler outlives every event of the channel, and the channel too.
  ControlChannel(Scheduler& scheduler, const ControlModel& model, Rng rng, Deliver deliver)
      : scheduler_(scheduler), model_(model), rng_(rng), deliver_(std::move(deliver)) {}

  void Send(Message message) {
    log_.push_back({.message = std::move(message)});
    if (open_) Transmit(first_ + log_.size() - 1);
  }

  // A new stream, to an end that has handled everything up to what was acknowledged. Sends the
  // rest.
  void Open() {
    open_ = true;
    delivered_ = first_ - 1;
    handling_ = false;
    for (Entry& entry : log_) entry.arrived = false;
    for (std::uint64_t number = first_; number < first_ + log_.size(); ++number) Transmit(number);
  }

  // The stream is gone: what is under way does not arrive.
  void Close() { open_ = false; }

  // While cut, packets vanish; what vanished is sent again when it ends.
  void SetCut(bool cut) {
    cut_ = cut;
    if (cut || !open_) return;
    for (std::uint64_t number = delivered_ + 1; number < first_ + log_.size(); ++number) {
      Transmit(number);
    }
  }

  // Everything up to `sequence` is handled for good.
  void Acknowledge(std::uint64_t sequence) {
    while (!log_.empty() && first_ <= sequence) {
      log_.pop_front();
      ++first_;
    }
    handling_ = handling_ && delivered_ > sequence;
    DeliverArrived();
  }

  // A new receiver and sender who know nothing of what was said.
  void Forget() {
    first_ += log_.size();
    log_.clear();
    delivered_ = first_ - 1;
    handling_ = false;
  }

  // A message is kept that is so.
  bool Holds(const auto& is_so) const {
    return std::ranges::any_of(log_, [&](const Entry& entry) { return is_so(entry.message); });
  }

  bool open() const { return open_; }
  bool cut() const { return cut_; }
  std::size_t size() const { return log_.size(); }
  std::uint64_t delivered_total() const { return delivered_total_; }

 private:
  struct Entry {
    Message message{};
    bool arrived = false;
  };

  void Transmit(std::uint64_t number) {
    const int copies =
        model_.duplicate_share > 0 && rng_.Uniform() < model_.duplicate_share ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      if (cut_) return;
      scheduler_.After(Delay(), [this, number] { OnPacket(number); });
    }
  }

  Duration Delay() {
    Duration delay = Seconds(model_.delay_seconds);
    if (model_.jitter_seconds > 0) {
      delay += Seconds(-model_.jitter_seconds * Logarithm(1 - rng_.Uniform()));
    }
    return delay;
  }

  void OnPacket(std::uint64_t number) {
    if (!open_ || cut_ || number <= delivered_ || number >= first_ + log_.size()) return;
    log_[number - first_].arrived = true;
    DeliverArrived();
  }

  // Acknowledging from within deliver_ comes back here: the outer call goes on with the next one.
  void DeliverArrived() {
    if (delivering_) return;
    delivering_ = true;
    while (open_ && !handling_ && delivered_ + 1 < first_ + log_.size() &&
           log_[delivered_ + 1 - first_].arrived) {
      ++delivered_;
      ++delivered_total_;
      handling_ = true;
      // A copy: handling may acknowledge it.
      const Message message = log_[delivered_ - first_].message;
      deliver_(delivered_, message);
    }
    delivering_ = false;
  }

  Scheduler& scheduler_;
  const ControlModel model_;
  Rng rng_;
  const Deliver deliver_;
  std::deque<Entry> log_;  // numbers first_, first_ + 1, ...
  std::uint64_t first_ = 1;
  std::uint64_t delivered_ = 0;  // handled by the receiving end of this stream
  std::uint64_t delivered_total_ = 0;
  bool handling_ = false;  // the receiver has not acknowledged the last one
  bool delivering_ = false;
  bool open_ = false;
  bool cut_ = false;
};

}  // namespace tactus::simulator
