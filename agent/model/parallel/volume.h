// What a mesh's collectives move, counted.

#pragma once

#include <cstdint>

namespace tactus::model {

// What one member's collectives have moved. [float32 numbers] What it receives of broadcasts and
// gatherings, and what it gives to sums that another gets. Of a sum for all 2 (n - 1) / n of its
// length, rounded down, which is what transports send. Over all members of a mesh as much is sent
// as is received.
struct Volume {
  std::uint64_t broadcast = 0;
  std::uint64_t summed = 0;      // by sums of which the root is another
  std::uint64_t all_summed = 0;  // by sums for all
  std::uint64_t gathered = 0;

  std::uint64_t Total() const { return broadcast + summed + all_summed + gathered; }
  Volume operator+(const Volume& other) const {
    return {.broadcast = broadcast + other.broadcast,
            .summed = summed + other.summed,
            .all_summed = all_summed + other.all_summed,
            .gathered = gathered + other.gathered};
  }
};

}  // namespace tactus::model
