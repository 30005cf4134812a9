// Two arrays, sample by sample: inputs and their targets.

#pragma once

#include <string>

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

// Files with an array each.
struct PairFormat {
  absl::StatusOr<StoredArray> (*read)(const std::string& path);
  Column (*inputs)(StoredArray array);  // what the inputs' samples become
};

// Opens two files with equal numbers of samples, and splits by sample. The targets' values are
// kept. Float64 values are rounded to float32.
// Errors: the format's, beginning with "inputs: " or "targets: "; InvalidArgument, "targets: ...",
// the numbers of samples differ.
absl::StatusOr<Split> OpenPair(const DataOptions::FilePair& files, const PairFormat& format,
                               double validation_fraction);

}  // namespace tactus::data
