// Who of a group that closes no round stands still, by two witnesses.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/job/records.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

// Why a group closes no round, from what its members and their agents said of where they stand.
struct Standstill {
  enum class Kind {
    kUnknown,   // nobody waits, nobody answered, or all wait and somebody moves
    kStopped,   // its process is stopped
    kSilent,    // its process runs and says nothing any more
    kAwaited,   // others wait for it; whether it moves, another look will tell
    kStill,     // others wait for it, and it does nothing
    kStorage,   // others wait for it, and it waits for a disk
    kBusy,      // others wait for it; it takes processor time and gets nothing done
    kSlow,      // others wait for it; it moves
    kLink,      // it and `other` wait for one another, and nothing comes through
    kLoaded,    // the same, and something does
    kTogether,  // all wait, none knows for whom, and nothing moves
  };
  Kind kind = Kind::kUnknown;
  std::uint32_t rank = 0;   // of whom it is said, where it is said of one
  std::uint32_t other = 0;  // with kLink and kLoaded

  // Worth telling people: it is not as it should be, and no other look is needed to say so.
  bool telling() const { return kind != Kind::kUnknown && kind != Kind::kAwaited && !moves(); }
  // It moves, so that whatever it takes it is not given up.
  bool moves() const { return kind == Kind::kSlow || kind == Kind::kLoaded; }
  // Two witnesses say that it does nothing and will not by itself.
  bool certain() const { return kind == Kind::kStopped || kind == Kind::kStill; }

  friend bool operator==(const Standstill&, const Standstill&) = default;
};

// "worker 3 on node b stands still: its process is stopped". members: by rank.
std::string WordsOf(const Standstill& standstill, const std::vector<MemberRecord>& members);

// Whether a worker has done anything between two answers, `apart` from one another, or waits for a
// disk: however slow, it does not stand still.
bool Moves(const protocol::StandingMessage& former, const protocol::StandingMessage& present,
           Duration apart);

// Members wait for one another in collectives: one witness is what each says of whom it waits for,
// which leads to who waits for nobody; the other is its agent, which sees the process. A member
// that computes for long looks the same to its peers as one that hangs; what it did between two
// looks tells them apart. Source: design, after NVIDIA/nvidia-resiliency-ext, whose monitors judge
// by one counter of the member itself.
class Stillness {
 public:
  // Of members that are looked at from now on.
  Stillness(std::size_t members, Instant now) : since_(now), members_(members) {}

  // A new look at all members begins.
  void Look();
  // The member is to be asked: it has answered what it was asked last. Who cannot answer, as
  // nothing leaves the coordinator while its disk is full, is not asked again and again.
  bool Ask(std::uint32_t rank);
  // Nobody answered the last look.
  bool unanswered() const { return unanswered_; }
  // What one of them answered.
  void Note(std::uint32_t rank, const protocol::StandingMessage& standing, Instant now);

  // What is to be said now: of the look before, but for what the answers to the present one say for
  // certain already.
  Standstill Present() const;

  // The time for the answers to a look is up: what it amounts to. Where anything moved, the time
  // begins anew.
  Standstill Conclude(Instant now);

  // How long who is to be given up is waited for.
  struct Patience {
    Duration certain{};   // with the same member standing still for certain at every look
    Duration doubtful{};  // with nothing moving, for whatever reason
  };
  bool Over(const Patience& patience, Instant now) const;

 private:
  struct Sighting {
    protocol::StandingMessage standing{};
    Instant at{};
  };
  struct Member {
    std::optional<Sighting> former{};   // at the look before
    std::optional<Sighting> present{};  // nothing: no answer yet
    bool asked = false;                 // and has not answered
  };

  Standstill Judge() const;
  bool Moved(const Member& member) const;
  bool AnyMoved() const;
  bool Computed(const Member& member) const;
  std::optional<std::uint32_t> Awaited(std::uint32_t rank) const;
  Standstill JudgeAwaited(std::uint32_t rank) const;
  Standstill JudgePair(std::uint32_t rank, std::uint32_t other) const;

  Instant since_;  // nothing moved
  std::vector<Member> members_;
  int looks_ = 0;  // that were concluded
  bool unanswered_ = false;
  Standstill verdict_{};                  // of the last one
  std::optional<Instant> certain_since_;  // so at every look since then
};

}  // namespace tactus::job
