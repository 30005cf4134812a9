// From sample indices to a micro-batch in memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/data/dataset.h"
#include "agent/model/model.h"

namespace tactus::worker {

// Reads samples into buffers that it keeps from call to call. One thread.
class ExampleReader {
 public:
  // The data set outlives the reader.
  explicit ExampleReader(const data::Dataset& dataset) : dataset_(dataset) {}

  // The samples of the given indices; valid until the next call.
  model::Examples Read(std::span<const std::uint64_t> indices);

 private:
  const data::Dataset& dataset_;
  std::vector<std::byte> inputs_;
  std::vector<std::byte> targets_;
};

}  // namespace tactus::worker
