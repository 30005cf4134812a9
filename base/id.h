// Identifiers as types, so that a node's id cannot be passed where a job's is meant.

#pragma once

#include <compare>
#include <cstdint>

namespace tactus {

// A number that names one thing of kind Tag. Ordered, so that ties are broken by id everywhere.
template <typename Tag>
struct Id {
  std::uint64_t value = 0;
  friend auto operator<=>(const Id&, const Id&) = default;
};

using JobId = Id<struct JobTag>;
using WorkerId = Id<struct WorkerTag>;  // one worker process; unique in the coordinator's life

}  // namespace tactus
