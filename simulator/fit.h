// Models of devices and links from what the rounds of a real job took.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/records.h"
#include "policies/encodings.h"
#include "simulator/cluster_model.h"

namespace tactus::simulator {

// A job's history, as the coordinator has it on record.
struct JobHistory {
  std::vector<job::MemberRecord> members{};  // by rank
  std::vector<job::RoundRecord> rounds{};    // oldest first; with the members' times
  std::uint32_t micro_batch = 64;            // samples in one pass at most, >= 1
  std::size_t bucket_bytes = 1u << 20;       // of one all-reduce
  double backward_share = 0;                 // of a pass; see SimulatedJob
  policies::Encoding encoding = policies::Encoding::kDense;  // of the last round
  policies::EncodingOptions encoding_options{};              // the job's
};

// What came of it.
struct FittedCluster {
  // One host a node, named as it; one device a member. Links are alike, as a round shows the
  // slowest alone. Members of one node reach one another over the fitted link too, because rounds
  // do not show them apart.
  ClusterModel cluster{};
  std::size_t rounds = 0;        // that were used
  double transfer_seconds = 0;   // mean over the rounds, of the member that waited least
  std::uint64_t parameters = 0;  // that a reduction carries, by its bytes
  std::string error{};           // not empty: why there is no cluster
};

// Fits, for each member, with k micro-batches of s samples together in time t,
//
//   t = a k + c s,   a >= 0, c > 0        least squares of t / (a k + c s), so that noise in
//                                         proportion to t does not shift the mean
//
// t is the member's compute time and what a round takes beside computing and waiting. a = 0 where
// the sizes do not vary enough to tell (by kFitSizesVary). The noise is what the members do not
// have in common: a member's variance of t / (a k + c s) less the mean covariance of two members,
// because a host that slows all of them down makes nobody wait.
//
// The links' rate is the one at which the recorded rounds, run again one after the other with each
// member's own times, take as long as they did; latency is kFitLatencySeconds, or 0 where rounds
// were shorter than with that. So the rate also stands for whatever else a reduction costs.
//
// Requires at least kFitRoundsMin rounds in which all members have times; the first kFitWarmUp are
// not used. Source: design.
FittedCluster FitCluster(const JobHistory& history);

inline constexpr std::size_t kFitRoundsMin = 10;
inline constexpr std::size_t kFitWarmUp = 1;
inline constexpr double kFitSizesVary = 1.25;  // largest over smallest
inline constexpr double kFitLatencySeconds = 100e-6;

}  // namespace tactus::simulator
