// Bytes of text as samples: windows of bytes, and the same windows one byte further as targets.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

struct TextOptions {
  std::string path;                  // file, folder or glob pattern: see ListTextFiles
  std::uint32_t context = 64;        // T [bytes], >= 1
  double validation_fraction = 0.1;  // in [0, 0.9]: the last bytes
  std::size_t mappings_max =
      32768;  // files of MappedFile::kMappedBytesMin or more; the kernel's limit is 65530
};

// The files of `path` joined in order; windows do not overlap and may span files. A part of n bytes
// has (n - 1) / T samples, sample i being
//   inputs   int64 [T]  bytes [i T, i T + T)
//   targets  int64 [T]  bytes [i T + 1, i T + T + 1)
// The last ValidationCount(bytes, fraction) bytes are the validation part, with windows of their
// own; when they are too few for one sample, there is no validation part and all bytes are for
// training.
//
// Errors: ListTextFiles' and MappedFile::Open's; InvalidArgument, no bytes or too few for one
// training sample;
//         ResourceExhausted, more than mappings_max files would have to be mapped.
absl::StatusOr<Split> OpenText(const TextOptions& options);

}  // namespace tactus::data
