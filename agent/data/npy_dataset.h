// Pairs of NumPy arrays as a data set.

#pragma once

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// Opens two .npy files with equal first dimensions, and splits by sample. Shapes are kept without
// the first dimension. Types:
//   in the file   as inputs                                          as targets
//   <f4, <f8      float32                                            float32
//   <i4, <i8      int64                                              int64
//   |u1           float32 scaled to [0, 1] by 1 / 255 when the file  int64
//                 has 3 dimensions or more (images), else int64
//
// Errors: ReadNpy's, OpenPair's; each begins with "inputs: " or "targets: ".
absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction);

}  // namespace tactus::data
