// A group of workers that reduce together in virtual time.

#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
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

// What the members share. A collective is computed when it is the next one of all who take part in
// it; the links then say when each of them is done. It begins on a member when the member has
// started it and its earlier ones are done there. Sums are taken in rank order, as by every
// transport.
//
// A member that dies, or leaves before the others' last collective, ends the group for the others a
// moment later; one that does not come to a collective, or is cut off, is waited for, as with the
// TCP transport.
class Group {
 public:
  static constexpr Duration kResetDelay = Seconds(1e-3);  // until a peer's death is noticed

  // Scheduler and network outlive the group, and the group outlives every event.
  Group(Scheduler& scheduler, Network& network, Places places, const GroupOptions& options);

  // The end of the member `rank`, whose code runs in `process`; each rank once. The member leaves
  // when its transport is gone, which must not outlive the group.
  std::unique_ptr<collective::Transport> Join(int rank, Process& process);

  // Whether a buffer of the member of this rank is one of the parameters' length, or a part of it.
  // Of sums and broadcasts such a one weighs as Weight has it; all else, as counts that members
  // compare, as it is.
  using OfParameters = std::function<bool(std::span<const float> buffer)>;
  void SetOfParameters(int rank, OfParameters of) { MemberOf(rank).of_parameters = std::move(of); }

  // What the member of this rank trains, for MeanOfParameters; outlives its transport.
  void SetParameters(int rank, std::span<const float> parameters) {
    MemberOf(rank).parameters = parameters;
  }
  // Of what the members hold now that have joined and have not left, in the midst of a round too.
  // Requires: there is one, and all have as many.
  std::vector<float> MeanOfParameters() const;

  // The group is over for a reason that all learn of after kResetDelay, if it is not over by then.
  // Also before anybody has joined.
  void Fail(const std::string& reason);

  // Connections from members on one host to those on another break: the first find that out. The
  // group is over for all, and nobody has left it.
  void Break(std::size_t from, std::size_t to);

  // What `elements` of a buffer weigh on the links. [bytes]
  double Weight(double elements) const { return elements * options_.bytes_per_element; }

  int size() const { return static_cast<int>(members_.size()); }

  // When the last member had started the collective that was computed last.
  Instant last_arrival() const { return last_arrival_; }
  double bytes_sent() const { return bytes_sent_; }

 private:
  friend class GroupCollective;
  friend class GroupTransport;

  using Operation = collective::Operation;
  using Kind = Operation::Kind;

  // A member's part in a collective; it is the handle's.
  struct Part {
    Operation operation{};
    Instant started{};
    bool arrived = false;  // is the next one of its member
    bool computed = false;
    Instant finished = Instant::max();  // once computed
  };
  struct Member {
    Process* process = nullptr;  // null: has not joined
    OfParameters of_parameters{};
    std::span<const float> parameters{};
    std::deque<Part*> next{};       // started and not computed, oldest first
    Instant free_from{};            // when the last one computed is done for it
    const Part* awaited = nullptr;  // that it sleeps until the end of
    bool gone = false;              // starts nothing any more
    bool measured = false;          // by messages that were long enough, since it was asked for
  };

  Member& MemberOf(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& MemberOf(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  // Of a member's handle and transport.
  void Start(int rank, Part& part);
  collective::Progress At(int rank, const Part& part) const;
  collective::Completion Wait(int rank, const Part& part);
  void Release(int rank, const Part& part);
  double TakeLinkRate(int rank);
  collective::Awaiting AwaitingOf(int rank) const;
  std::vector<int> FailedFor(int rank) const;
  void Leave(int rank);
  void SetGone(Member& member);

  void Arrive(int rank);
  std::span<const int> Meet(int rank);
  bool Misses(int rank) const;
  void Compute(std::span<const int> ranks);
  double BytesOf(const Operation& operation, int rank) const;
  void Send(std::span<const int> ranks);
  void SendMessages(std::span<const int> ranks, Network& network);
  void SendPair(std::span<const int> ranks, Network& network);
  void SendTurns(CollectiveCall call, Network& network);
  void Combine();
  void FailAt(Instant time, const std::string& reason);

  Scheduler& scheduler_;
  Network& network_;
  const Places places_;
  const GroupOptions options_;
  std::vector<Member> members_;
  std::vector<int> everybody_;            // all ranks
  std::array<int, 2> pair_{};             // the two of an exchange
  std::size_t gone_ = 0;                  // members
  std::optional<int> left_{};             // the first that did
  std::set<std::pair<int, int>> broken_;  // who lost the connection to whom
  std::size_t met_ = 0;                   // members whose next collective is everybody's
  std::vector<int> arrived_;              // at collectives that were not looked at yet
  // Of the collective that is computed, by place among its ranks.
  std::vector<Part*> parts_;
  std::vector<Instant> times_;
  std::vector<Operation> operations_;
  std::vector<Messages> turns_;     // that all members sent, by turn of a conversation
  std::vector<std::size_t> fixed_;  // of each of them, Conversation::FixedBytes
  std::string failure_;             // empty: none
  Instant failed_at_ = Instant::max();
  Instant last_arrival_{};
  double bytes_sent_ = 0;
};

}  // namespace tactus::simulator
