// CIFAR-10 in its binary form: one label byte, then 3072 pixel bytes, an image after another.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

// Opens a folder or one .bin file.
//   folder   data_batch_*.bin, sorted by name, are for training. test_batch.bin, when it is there,
//            is the validation part, and `validation_fraction` is not used.
//   file     its records; the last ValidationCount(records, validation_fraction) are for validation
// A sample:
//   inputs   float32 [3, 32, 32]  (byte / 255 - mean) / deviation, per channel; float32 arithmetic
//                                 in that order, so values equal those of the usual PyTorch loader
//                                 bit for bit
//   targets  int64 scalar         the label, 0 to 9
// All labels are checked here, once.
//
// Errors: MappedFile::Open's; NotFound, the folder has no data_batch_*.bin; InvalidArgument, a file
//         is empty, has part of a record, or a label above 9 (the first such record is named).
absl::StatusOr<Split> OpenCifar(const std::string& path, double validation_fraction);

}  // namespace tactus::data
