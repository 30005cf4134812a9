// How the members of a group see that all are there, where what they wait for does not tell.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::collective {

// Barriers that follow one another, of which one fails when a member has left or died. One thread
// at a time, but for failed().
class Heartbeat {
 public:
  // transport: of the same members, for nothing else; null: nobody tells. interval: between two.
  Heartbeat(std::unique_ptr<Transport> transport, Duration interval, Instant now);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();  // the others find this member gone

  // Goes on with them. Why a member is known to be gone, which stays; empty: none is.
  const std::string& Look(Instant now);
  Instant gone_at() const { return gone_at_; }  // when that was found

  // Who has taken no part for long, as far as the transport knows.
  std::vector<int> Missed(Instant now);
  // As Transport's.
  std::vector<int> failed();

  // The others find this member gone; the first reason stays.
  void Abort(const std::string& reason);

 private:
  const std::unique_ptr<Transport> transport_;
  const Duration interval_;
  std::unique_ptr<Collective> beat_;  // the barrier under way; null between two
  Instant beat_at_;                   // when the last one was done
  std::string gone_;
  Instant gone_at_ = {};
};

}  // namespace tactus::collective
