// How a group's buffers travel, from what its members are.

#pragma once

#include <string>
#include <vector>

#include "coordinator/job/records.h"

namespace tactus::job {

// The first that fits:
//
//   one member alone              nccl on a GPU, else tcp: nothing travels
//   processors alone              tcp
//   GPUs and processors           staged: NCCL joins GPUs alone
//   a MIG slice among them        staged: NCCL joins whole GPUs alone
//   one without NCCL, or another  staged: different versions do not talk to one another
//   version of it
//   otherwise                     nccl
//
// members: by rank. nccl_versions: what each said when it was ready; one that said nothing, as
// workers of older versions do, is taken to have what the others have. The reason is for a person
// and names members.
TransportRecord ChooseTransport(const std::vector<MemberRecord>& members,
                                const std::vector<std::string>& nccl_versions);

}  // namespace tactus::job
