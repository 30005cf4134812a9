// Philox4x32-10: random words without a state.
//
// The same counter and key give the same four words on every machine, so what is drawn for an
// element depends neither on the order of the work, nor on how it is split, nor on a retry.

#pragma once

#include <cstdint>

#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// The generator's input, and what it makes of it: 128 bits.
struct PhiloxBlock {
  std::uint32_t word[4] = {};
};

struct PhiloxKey {
  std::uint32_t word[2] = {};
};

// Ten rounds over one block. For a fixed key a bijection of the blocks. Bit-identical everywhere:
// integers alone.
//
// Source: [philox] the family of ten rounds on four words, memory, unverified; the known answers of
// the authors' library are tested.
TACTUS_HOST_DEVICE constexpr PhiloxBlock Philox(PhiloxBlock counter, PhiloxKey key) {
  PhiloxBlock c = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xd2511f53} * c.word[0];
    const std::uint64_t odd = std::uint64_t{0xcd9e8d57} * c.word[2];
    c = {{static_cast<std::uint32_t>(odd >> 32) ^ c.word[1] ^ key.word[0],
          static_cast<std::uint32_t>(odd),
          static_cast<std::uint32_t>(even >> 32) ^ c.word[3] ^ key.word[1],
          static_cast<std::uint32_t>(even)}};
    key.word[0] += 0x9e3779b9;  // the golden ratio's and sqrt(3)'s fractions
    key.word[1] += 0xbb67ae85;
  }
  return c;
}

// Whose draws they are. Two uses that must be independent differ in at least one field.
struct Draws {
  std::uint32_t seed = 0;    // of the job
  std::uint32_t round = 0;   // t, the applied step: a retried attempt draws the same
  std::uint32_t worker = 0;  // the member's stable id
  std::uint32_t stream = 0;  // which use within the round, e.g. what a worker sends, or a server
};

// The words of the elements 4 * quad to 4 * quad + 3 of the segment `segment`, one each.
//
// Key (seed, segment), counter (round, quad, worker, stream), so that a segment's draws do not
// depend on its place in the buffer. Segments to 2^34 elements.
// Source: design.
TACTUS_HOST_DEVICE constexpr PhiloxBlock WordsOfQuad(const Draws& draws, std::uint32_t segment,
                                                     std::uint32_t quad) {
  return Philox({{draws.round, quad, draws.worker, draws.stream}}, {{draws.seed, segment}});
}

}  // namespace tactus::cuda
