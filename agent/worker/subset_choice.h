// How the members of a group choose which samples epochs are made of from here on.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/collective/transport.h"
#include "agent/engine/samples/subset.h"
#include "agent/life/world.h"
#include "agent/worker/trainee.h"

namespace tactus::worker {

// Equal on all members, but for `beside`.
struct ChoiceOptions {
  engine::SubsetOptions subset{};
  std::uint64_t seed = 1;
  std::uint64_t former = 0;             // choices made before
  std::vector<std::uint32_t> shares{};  // of the members, as their batch sizes
  std::function<void()> beside{};       // called now and then
};

// What samples are told apart by takes no more of a member's memory; else, as for more numbers of
// one sample than model::GradientProxies::kWidthMax, the choice is InvalidArgument.
inline constexpr std::size_t kProxyBytesMax = std::size_t{8} << 30;

// All members call it in the same place of their collectives, with equal parameters and buffers; it
// waits, and passes once over the member's share of all samples. The subset is the same on all.
// Errors: Unavailable, the group was lost; InvalidArgument, "data.subset.craig: ...", there is no
// such subset; those of Trainee::Proxies.
absl::StatusOr<life::SubsetChoice> ChooseSubset(Trainee& trainee, collective::Transport& transport,
                                                const ChoiceOptions& options);

}  // namespace tactus::worker
