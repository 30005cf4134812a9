// Decompression of .gz files into memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::data {

// The largest content of a .gz file that is read: about forty times MNIST. Larger data sets are
// better stored plain, where they are mapped and take no memory.
inline constexpr std::size_t kInflatedBytesMax = std::size_t{2} << 30;

// Whether `bytes` begin as every gzip file does.
bool IsGzip(std::span<const std::uint8_t> bytes);

// The content of a gzip file, of one member or several.
// Errors: InvalidArgument, cut short, damaged, followed by other bytes, or more than `bytes_max`;
//         the message continues the name of the file: "is cut short ...".
absl::StatusOr<std::vector<std::uint8_t>> Inflate(std::span<const std::uint8_t> bytes,
                                                  std::size_t bytes_max);

}  // namespace tactus::data
