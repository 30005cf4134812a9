// Data to classify: in memory, given or made up.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tactus::simulator {

struct Examples {
  std::size_t features = 1;             // of an input, >= 1
  std::uint32_t classes = 2;            // >= 2
  std::vector<float> inputs{};          // [size, features] row-major
  std::vector<std::uint32_t> labels{};  // [size], each below classes

  std::size_t size() const { return labels.size(); }
};

// A cluster for each class: centres drawn around 0, inputs a standard normal around the centre of
// their class.
struct SyntheticOptions {
  std::size_t samples = 10000;  // >= 1
  std::size_t features = 32;    // >= 1
  std::uint32_t classes = 10;   // >= 2
  // Root mean square of the distance of two centres, >= 0. Of two classes that far apart the best
  // classifier mistakes a share Phi(-separation / 2): 16 % at 2, 2 % at 4.
  double separation = 4;
  std::uint64_t seed = 1;  // of the centres and, with its number, of a sample
  // Number of the first sample: training and validation samples of the same clusters have the same
  // seed and numbers apart.
  std::uint64_t first = 0;
};

// The samples numbered first to first + samples - 1. Equal options give equal bits.
Examples MakeSyntheticExamples(const SyntheticOptions& options);

}  // namespace tactus::simulator
