// What a job does while somebody disturbs it, by looks from outside. Pure.

#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// What a stretch of time came to.
struct Stretch {
  Duration length{};
  std::uint64_t rounds = 0;       // that were seen in it, lost ones included
  std::uint64_t samples = 0;      // of these
  std::uint64_t rounds_lost = 0;  // gone back behind, with the attempts that they belonged to
  std::uint64_t regroups = 0;
  std::uint64_t restarts = 0;  // attempts that ended, with another one after them
  Duration longest_gap{};      // between two looks at which there were new rounds, or an end of it

  // Samples a second that remain, lost rounds counting as samples of the mean round:
  //
  //   samples (1 - rounds_lost / rounds) / length
  //
  // 0 where there is nothing to divide by; below 0 where more was lost than was trained meanwhile.
  double SamplesPerSecond() const;
};

// Adds up what a job came to. To be told of looks in their order, each of which is as exact as they
// are close together: a gap by the time between two of them.
class Disturbance {
 public:
  // Begins the first stretch, with a job as it is.
  Disturbance(const v1::Job& job, Instant now);

  // From which round on the next look is to ask for rounds.
  std::uint64_t next_round() const { return next_round_; }

  // `job`, and then its rounds from next_round() on, as they are on record. Of a job that is not
  // running none count: they may be those of an attempt that was lost.
  void Look(const v1::Job& job, const std::vector<v1::Round>& rounds, Instant now);

  // The stretch that ends now; the next one begins.
  Stretch Take(Instant now);

 private:
  void NoteGap(Instant now);

  Stretch stretch_{};
  Instant begin_;
  Instant newest_;  // the last look with new rounds, or the stretch's begin
  std::uint64_t next_round_;
  std::uint64_t attempt_;
  std::uint64_t regroups_;
};

}  // namespace tactus::client
