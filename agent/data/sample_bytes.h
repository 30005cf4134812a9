// How datasets write elements into a caller's bytes, and what every Read may rely on.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "agent/data/dataset.h"
#include "base/check.h"

namespace tactus::data {

// Writes `value` as element `index` of an array that begins at `bytes`, whatever its alignment.
template <typename T>
void StoreElement(std::byte* bytes, std::size_t index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

// Element `index` of an array of T in this machine's byte order, whatever its alignment.
template <typename T>
T LoadElement(const std::uint8_t* bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Holds a caller to the contract of Dataset::Read.
inline void CheckRead(const Dataset& dataset, std::span<const std::uint64_t> indices,
                      std::span<std::byte> inputs, std::span<std::byte> targets) {
  TACTUS_CHECK(inputs.size() == PlacesOf(dataset.inputs(), indices.size()).bytes);
  TACTUS_CHECK(targets.size() == indices.size() * dataset.targets().BytesPerSample());
  for (const std::uint64_t index : indices) TACTUS_CHECK(index < dataset.size());
}

}  // namespace tactus::data
