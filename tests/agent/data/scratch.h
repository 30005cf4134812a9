// Files for tests: a folder that removes itself, and builders of the formats that agent/data reads.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/data/dataset.h"

namespace tactus::data {

using Bytes = std::vector<std::uint8_t>;

Bytes ToBytes(std::string_view text);

// A new folder under the system's place for temporary files, removed with all it holds.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file (folders of its name are made) and returns its path.
  std::string Write(const std::string& name, const Bytes& bytes) const;
  std::string Write(const std::string& name, std::string_view text) const;
  std::string MakeFolder(const std::string& name) const;

 private:
  std::string path_;
};

// While it lives, this process has no more rights over files than any user, even if root started
// it.
class OrdinaryUser {
 public:
  OrdinaryUser();
  ~OrdinaryUser();
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  const bool was_root_;
};

// CIFAR records with these labels; pixel p of record r is (r * 31 + p) mod 256.
Bytes CifarRecords(const std::vector<std::uint8_t>& labels);

struct IdxParts {
  std::uint8_t type = 0x08;
  std::vector<std::uint32_t> shape = {};
  Bytes elements = {};
};
Bytes IdxFile(const IdxParts& parts);

struct NpyParts {
  std::string descr = "<f4";
  std::string shape = "()";  // as Python writes it: "(2, 3)"
  Bytes elements = {};
  std::uint8_t version = 1;
  std::string fortran_order = "False";
};
Bytes NpyFile(const NpyParts& parts);

// A .npy file whose header has this text.
Bytes NpyFileWithText(std::uint8_t version, const std::string& text, const Bytes& elements);

// The elements' bytes in this machine's order.
template <typename T>
Bytes ElementBytes(const std::vector<T>& values) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return Bytes(begin, begin + values.size() * sizeof(T));
}

Bytes Gzip(const Bytes& bytes);

// What Read gives for one sample or several, as values.
template <typename Input, typename Target>
struct Samples {
  std::vector<Input> inputs;
  std::vector<Target> targets;
};

template <typename Input, typename Target>
Samples<Input, Target> ReadSamples(const Dataset& dataset,
                                   const std::vector<std::uint64_t>& indices) {
  Samples<Input, Target> samples;
  samples.inputs.resize(indices.size() * dataset.inputs().front().ElementsPerSample());
  samples.targets.resize(indices.size() * dataset.targets().ElementsPerSample());
  dataset.Read(indices, std::as_writable_bytes(std::span(samples.inputs)),
               std::as_writable_bytes(std::span(samples.targets)));
  return samples;
}

// The message of the error that OpenData gives; "ok" when it gives none.
std::string ErrorOf(const DataOptions& options);

// The folder of real data beside the source tree, when there is one: $TACTUS_SHARED_DATA, else
// ../shared/data from $TACTUS_SOURCE.
std::optional<std::string> RealDataFolder();

}  // namespace tactus::data
