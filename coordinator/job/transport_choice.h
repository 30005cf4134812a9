// How a group's buffers travel, from what its members are.

#pragma once

#include <string>
#include <vector>

#include "coordinator/job/records.h"

namespace tactus::job {

// What is to be connected.
struct TransportQuestion {
  const std::vector<MemberRecord>& members;  // by rank
  // What each said when it was ready; one that said nothing, as workers of older versions do, is
  // taken to have what the others have.
  const std::vector<std::string>& nccl_versions;
  bool encrypted = false;  // what they send each other is to be
};

// The first that fits:
//
//   one member alone              nccl on a GPU, else tcp: nothing travels
//   processors alone              tcp
//   to be encrypted               staged: NCCL cannot
//   GPUs and processors           staged: NCCL joins GPUs alone
//   a MIG slice among them        staged: NCCL joins whole GPUs alone
//   one without NCCL, or another  staged: different versions do not talk to one another
//   version of it
//   otherwise                     nccl
//
// The reason is for a person and names members.
TransportRecord ChooseTransport(const TransportQuestion& question);

}  // namespace tactus::job
