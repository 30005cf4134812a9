// Two arrays, sample by sample: inputs and their targets.

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "agent/data/array.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// An array and what its samples become.
struct Column {
  StoredArray array;
  // Has as many elements a sample as the array. Its type is kFloat32 (a byte becomes byte / 255)
  // or, where the array holds integers, kInt64 (values kept).
  TensorSpec spec;
};

// The specification of samples of `array` as type `type`: its shape without the first dimension.
TensorSpec SampleSpec(const StoredArray& array, ElementType type);

// A column whose values are kept: integers (bytes too) become int64, the others float32.
Column ValueColumn(StoredArray array);

// Joins two columns. Float64 values are rounded to float32.
// Errors: InvalidArgument, "targets: ...", their numbers of samples differ.
absl::StatusOr<std::shared_ptr<const Dataset>> PairColumns(Column inputs, Column targets);

}  // namespace tactus::data
