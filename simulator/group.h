// A group of workers that reduce together in virtual time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "base/time.h"
#include "simulator/cluster_model.h"
#include "simulator/collective_model.h"
#include "simulator/network.h"
#include "simulator/process.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {

struct GroupOptions {
  Algorithm algorithm = Algorithm::kMesh;
  // Bytes that an element of a buffer weighs on the links: 4, or more where a small learner stands
  // for a large model.
  double bytes_per_element = 4;
};

// What the members share. The arithmetic is done when the last member has started a collective; the
// links then say when each of them is done. Sums are taken in rank order, as by every transport.
//
// A member that dies, or leaves before the others' last collective, ends the group for the others a
// moment later; one that stands still, or is cut off, for kCollectiveTimeout does too, as with the
// Gloo transport.
class Group {
 public:
  static constexpr Duration kCollectiveTimeout = Seconds(600);
  static constexpr Duration kResetDelay = Seconds(1e-3);  // until a peer's death is noticed

  // Scheduler and network outlive the group, and the group outlives every event.
  Group(Scheduler& scheduler, Network& network, Places places, const GroupOptions& options);

  // The end of the member `rank`, whose code runs in `process`; each rank once. The member leaves
  // when its transport is gone, which must not outlive the group.
  std::unique_ptr<collective::Transport> Join(int rank, Process& process);

  // The group is over for a reason that all learn of after kResetDelay, if it is not over by then.
  // Also before anybody has joined.
  void Fail(const std::string& reason);

  // What `elements` of a buffer weigh on the links. [bytes]
  double Weight(double elements) const { return elements * options_.bytes_per_element; }

  int size() const { return static_cast<int>(members_.size()); }

  // When the last member had started the collective that was computed last.
  Instant last_arrival() const { return last_arrival_; }
  double bytes_sent() const { return bytes_sent_; }

 private:
  friend class GroupCollective;
  friend class GroupTransport;

  static constexpr int kNoRoot = -1;  // an all-reduce

  struct Member {
    Process* process = nullptr;  // null: has not joined
    std::uint64_t started = 0;   // collectives
  };
  // One collective, until all members have let go of it.
  struct Gathering {
    std::size_t length = 0;
    int root = kNoRoot;
    int arrived = 0;
    int released = 0;
    bool computed = false;
    std::vector<std::span<float>> buffers{};  // by rank
    std::vector<Instant> ready{};
    std::vector<Instant> finished{};  // when computed
    std::vector<bool> waiting{};
  };

  std::uint64_t Start(int rank, std::span<float> buffer, int root);
  collective::Progress At(int rank, std::uint64_t number) const;
  collective::Completion Wait(int rank, std::uint64_t number);
  void Release(std::uint64_t number);
  void Leave(int rank);
  Gathering& Open(std::uint64_t number, std::size_t length, int root);
  void Compute(Gathering& gathering);
  void SendMessages(Gathering& gathering);
  void Combine(const Gathering& gathering);
  void FailAt(Instant time, const std::string& reason);
  void Watch();

  Scheduler& scheduler_;
  Network& network_;
  const Places places_;
  const GroupOptions options_;
  std::vector<Member> members_;
  std::deque<Gathering> gatherings_;  // numbers first_, first_ + 1, ...
  std::uint64_t first_ = 0;
  std::vector<Gathering> spare_;  // for reuse of their memory
  std::vector<const float*> sources_;
  std::string failure_;  // empty: none
  Instant failed_at_ = Instant::max();
  Instant last_arrival_{};
  double bytes_sent_ = 0;
  int left_ = 0;                    // members
  std::uint64_t end_ = UINT64_MAX;  // collectives from this number on lack one who left
};

}  // namespace tactus::simulator
