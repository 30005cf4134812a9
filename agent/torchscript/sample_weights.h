// How much samples count, by their index.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tactus::torchscript {

// Of the samples of batches, which may be computed anew in other pieces. One thread.
class SampleWeights {
 public:
  // samples: how many there are.
  explicit SampleWeights(std::uint64_t samples) : samples_(samples) {}

  // Of a batch, from here on; without weights all samples count 1.
  void Take(std::span<const std::uint64_t> indices, std::span<const float> weights) {
    if (weights.empty()) return all_.clear();
    if (all_.empty()) all_.assign(samples_, 1.0f);
    for (std::size_t i = 0; i < indices.size(); ++i) all_[indices[i]] = weights[i];
  }

  // Of samples that were taken; empty: each 1. Valid until the next call.
  std::span<const float> Of(std::span<const std::uint64_t> indices) {
    asked_.clear();
    if (all_.empty()) return {};
    for (const std::uint64_t index : indices) asked_.push_back(all_[index]);
    return asked_;
  }

 private:
  std::uint64_t samples_;
  std::vector<float> all_;  // [samples], or empty
  std::vector<float> asked_;
};

}  // namespace tactus::torchscript
