// IDX files as a data set.

#pragma once

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// Opens two IDX files with equal numbers of samples, and splits by sample. A sample:
//   inputs   float32; bytes are scaled to [0, 1] by 1 / 255. Images [n, h, w] get a channel,
//            [1, h, w]; any other shape is kept without its first dimension.
//   targets  int64 for bytes, float32 for float32; the shape without its first dimension
//
// Errors: ReadIdx's, OpenPair's; each begins with "inputs: " or "targets: ".
absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction);

}  // namespace tactus::data
