// How fast the ways to the others are, by what they carried.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/collective/transport.h"

namespace tactus::engine {

// One thread. A way counts while something is on it, so that waiting for members that compute makes
// it no slower; what shares a link with others at that time has its share of it.
class LinkMeter {
 public:
  // Of fewer bytes since then latency would be taken for a slow link.
  static constexpr std::uint64_t kBytesMin = 256 << 10;

  // [bytes/s] to each member by rank, 0 to itself, since the last time that there was an answer.
  // Empty: too little was carried on some way, or nobody knows. carried: of a transport of this
  // rank, growing.
  std::vector<double> Take(std::span<const collective::Carried> carried, std::size_t rank);

 private:
  std::vector<collective::Carried> before_;
};

}  // namespace tactus::engine
