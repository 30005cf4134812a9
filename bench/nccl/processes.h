// Members of a group as processes, as workers are: a driver treats those of one process apart.

#pragma once

#include <functional>
#include <vector>

#include "base/time.h"
#include "bench/nccl/outcome.h"
#include "cuda/nccl_endpoint.h"

namespace tactus::bench::nccl {

// What a member's process is given.
struct Membership {
  int rank = 0;
  cuda::nccl::UniqueId id{};
  // Ends this process at once, as kill -9 does, in every member but rank 0; in rank 0 returns when
  // they are gone.
  std::function<void()> kill_others{};
};
using MemberCase = std::function<Outcome(const Membership&)>;

// Runs a case in `size` new processes, and waits until they end or the limit has passed; then they
// are killed, and their outcome is that. To be called before the process has touched CUDA, which
// does not outlive a fork.
std::vector<Outcome> InProcesses(int size, Duration limit, const MemberCase& run);

}  // namespace tactus::bench::nccl
