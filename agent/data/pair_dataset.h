// Files with an array each as a data set: inputs and their targets, sample by sample.

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
// numbers of samples differ, or "more_inputs", IDX has one.
absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction);

// Opens .npy files with equal first dimensions, and splits by sample: one for each argument of the
// model, and the targets. Shapes are kept without the first dimension. Types:
//   in the file                    as inputs                                        as targets
//   <f2, <f4, <f8                  float32, rounded                                 float32
//   |i1, <i2, <u2, <i4, <i8        int64                                            int64
//   |u1                            float32 scaled to [0, 1] by 1 / 255 when the     int64
//                                  file has 3 dimensions or more (images), else
//                                  int64
//   |b1                            bool                                             int64
// FilePair::input_types says otherwise of inputs: "float32" is any number as one, "scaled" bytes
// over 255, "int64" any integer, "uint8" bytes as they are, "bool" bytes of 0 and 1.
//
// Errors: ReadNpy's, beginning with "inputs: ", "more_inputs[0]: " or "targets: "; InvalidArgument,
// the numbers of samples differ, or of "input_types", a type is unknown, does not fit the file, or
// there are not as many as inputs.
absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction);

}  // namespace tactus::data
