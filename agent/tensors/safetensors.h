// The safetensors format.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/data/mapped_file.h"

namespace tactus::tensors {

// One tensor of a file.
struct NamedTensor {
  std::string name = {};
  std::string type;                      // "F32", "I64", ...: the format's name of the element type
  std::size_t element_bytes = 4;         // 1, 2, 4 or 8
  std::vector<std::int64_t> shape = {};  // row-major
  std::span<const std::byte> bytes = {};
};

// Tensors in memory of their own, which is used again when they are copied anew.
struct TensorsCopy {
  std::vector<NamedTensor> tensors{};
  std::vector<std::vector<std::byte>> memory{};  // where their bytes are
};

// Writes a file beside `path` and renames it: 8 bytes little-endian length of the header, the
// header as JSON padded with spaces to a multiple of 8, then the tensors without gaps, wider
// elements first and names in order among equals, so that each stands aligned. Names must differ.
// metadata: further texts for the header's __metadata__, where "format" is "pt".
// Errors: see AtomicFile.
//
// Source: memory, unverified: the format's README in huggingface/safetensors.
absl::Status WriteSafetensors(const std::string& path, std::vector<NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {},
                              const std::stop_token& stop = {});

// A file that was read. The tensors' bytes are the file's: see data::MappedFile.
struct SafetensorsFile {
  data::MappedFile file;
  std::map<std::string, std::string> metadata{};
  std::map<std::string, NamedTensor> tensors{};  // by name
};

// What is wanted of a file.
struct WantedTensor {
  std::string name = {};
  std::string type = {};
  std::vector<std::int64_t> shape = {};
};

// How the file's tensors differ from those that this job has: "tensor 'head.weight' is F32[10, 64],
// this job's is F32[100, 64]; it has no tensor 'head.bias', this job's is F32[100]". The first
// kDifferencesMax by name, the others are counted; empty: all are as wanted. Others that the file
// has do not matter.
inline constexpr std::size_t kDifferencesMax = 8;
std::string DifferencesFrom(const SafetensorsFile& file, const std::vector<WantedTensor>& wanted);

inline constexpr std::size_t kHeaderBytesMax = 16u << 20;

// Opens a file of any origin and checks all that it says of itself: a header of at most
// kHeaderBytesMax, known types, each tensor's bytes as many as its shape needs, and the tensors
// together the whole rest of the file, without gap or overlap. Bytes are not aligned where the
// file's writer did not see to it.
// Errors: data::FileError's; InvalidArgument, with the path and what was found.
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path);

}  // namespace tactus::tensors
