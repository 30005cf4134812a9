// What planners found, for the next jobs of their kinds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// What jobs of one kind have in common: JobSettings::kind, and how many devices of which models and
// emulated speeds they run on, in any order. Requires: kind is not empty.
std::string PriorKey(const std::string& kind, const std::vector<MemberRecord>& members);

// What was found of one device's memory stands beside it, by kind of job and model of the device:
// how many samples a pass may have, as more ran out of memory. 0: the bytes say nothing of it.
std::string PassBoundKey(const std::string& kind, const MemberRecord& member);
std::string BytesOfPassBound(std::uint32_t samples);
std::uint32_t PassBoundOf(const std::string& bytes);

// The newest kPriorsMax of policies::Prior and bounds of passes, as bytes that nobody has looked
// at; those put longest ago give way. One thread.
class Priors {
 public:
  static constexpr std::size_t kPriorsMax = 1000;

  // One that a former coordinator put.
  void Restore(PriorRecord record);

  // Empty: there is none.
  std::string Find(const std::string& key) const;

  // In the place of what there was of the key. What changes is to be written.
  void Put(const std::string& key, std::string prior, Actions& actions);

  // As Put() of nothing; also of what there is not.
  void Drop(const std::string& key, Actions& actions);

  // Samples of a pass of such a job on the member's device; 0: no bound is known.
  std::uint32_t PassSamplesMax(const std::string& kind, const MemberRecord& member) const;

  // More of them did not fit, which is put where it is news. 0, or an empty kind: there is none.
  void BoundPasses(const std::string& kind, const MemberRecord& member, std::uint32_t samples,
                   Actions& actions);

 private:
  std::map<std::string, PriorRecord> records_;  // by key
  std::uint64_t newest_ = 0;                    // number of a record, put so far
};

}  // namespace tactus::job
