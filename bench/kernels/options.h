// What bench_kernels is asked for.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tactus::bench {

inline constexpr std::size_t kMebibyte = 1 << 20;

struct Options {
  std::vector<std::size_t> sizes{kMebibyte, 16 * kMebibyte, 64 * kMebibyte,
                                 256 * kMebibyte};  // [bytes] of one buffer
  int repetitions = 11;
  // A repetition's calls are captured once as a graph and replayed: what the host takes to queue
  // them is no part of the figure.
  bool graph = false;
  std::string filter{};  // a part of the names of the operations that are measured
  std::string json{};    // a path; empty: none
};

// What the arguments after the program's name ask for; none where they are wrong. --quick stands
// for sizes and repetitions that a later option may change.
std::optional<Options> Parse(std::span<const char* const> arguments);

}  // namespace tactus::bench
