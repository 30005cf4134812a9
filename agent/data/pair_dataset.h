// Two files with an array each as a data set: inputs and their targets, sample by sample.

#pragma once

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// Opens two IDX files with equal numbers of samples, and splits by sample. A sample:
//   inputs   float32; bytes are scaled to [0, 1] by 1 / 255. Images [n, h, w] get a channel,
//            [1, h, w]; any other shape is kept without its first dimension.
//   targets  int64 for bytes, float32 for float32; the shape without its first dimension
//
// Errors: ReadIdx's, beginning with "inputs: " or "targets: "; InvalidArgument, "targets: ...", the
// numbers of samples differ.
absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction);

// Opens two .npy files with equal first dimensions, and splits by sample. Shapes are kept without
// the first dimension; float64 values are rounded to float32. Types:
//   in the file   as inputs                                          as targets
//   <f4, <f8      float32                                            float32
//   <i4, <i8      int64                                              int64
//   |u1           float32 scaled to [0, 1] by 1 / 255 when the file  int64
//                 has 3 dimensions or more (images), else int64
//
// Errors: as OpenIdx, with ReadNpy's.
absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction);

}  // namespace tactus::data
