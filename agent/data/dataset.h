// Data sets: what a worker trains on, addressed by sample index, without any tensor library.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::data {

enum class ElementType { kFloat32, kInt64, kUint8, kBool };

// Bytes of one element.
std::size_t SizeOf(ElementType type);

// Type and shape of one sample's input or target.
struct TensorSpec {
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;  // without the batch dimension; empty = a scalar a sample

  std::size_t ElementsPerSample() const;
  std::size_t BytesPerSample() const { return ElementsPerSample() * SizeOf(type); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Where the tensors of so many samples lie, one behind the other, each at a multiple of 64 bytes.
struct TensorPlaces {
  std::vector<std::size_t> offsets;  // [tensors, bytes]
  std::size_t bytes = 0;             // of all
};
TensorPlaces PlacesOf(std::span<const TensorSpec> tensors, std::size_t samples);

// Samples by index. Immutable after it was opened, so Read may be called from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::uint64_t size() const = 0;  // [samples], >= 1
  // The arguments of a model, in their order; at least one.
  virtual const std::vector<TensorSpec>& inputs() const = 0;
  virtual const TensorSpec& targets() const = 0;

  // Copies the samples of the given indices (each below size()), in that order, into
  //   inputs   [PlacesOf(inputs(), indices.size()).bytes], each input's samples at its place
  //   targets  [indices.size() * targets().BytesPerSample()]
  // Inputs come ready for a model: images as float32, per channel standardised; bytes as int64
  // tokens.
  virtual void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
                    std::span<std::byte> targets) const = 0;
};

// What is done to images, [channels, height, width], before a model sees them.
struct ImageOptions {
  std::vector<double> mean = {};       // by channel, or one for all; empty: 0
  std::vector<double> deviation = {};  // the same; empty: 1
  std::uint32_t crop = 0;              // see Augmentation
  bool flip = false;
};

// Inputs and their targets, sample by sample.
struct FilePair {
  std::string inputs;
  std::string targets;
  std::vector<std::string> more_inputs = {};  // of further arguments of the model
  std::vector<std::string> input_types = {};  // by input; empty: what suits the file
};

// Where samples come from: one of the sources of a job file's `data`, and how it is split.
struct DataOptions {
  using FilePair = data::FilePair;
  std::optional<std::string> text = {};   // file, folder or glob
  std::optional<std::string> cifar = {};  // folder or one .bin file
  std::optional<FilePair> idx = {};
  std::optional<FilePair> numpy = {};
  std::optional<ImageOptions> images = {};
  std::uint32_t context = 64;        // of a text sample, in bytes
  double validation_fraction = 0.1;  // in [0, 0.9]: the last samples
  // So many of those are evaluated at most, the first ones; OpenData leaves that to its caller.
  std::uint64_t validation_samples_max = 10000;
};

// The two parts of the data.
struct Split {
  std::shared_ptr<const Dataset> train;       // never null
  std::shared_ptr<const Dataset> validation;  // null when the fraction gives no sample
  std::vector<float> black{};  // of images: what a pixel of zeros is to the model, by channel
};

// Opens exactly one source (the one that is set) and splits it.
//
// Errors are those of a field of the job file (agent/data/field_error.h), "data.text: ...":
// NotFound, a path is not there; InvalidArgument, a file is empty, cut short, of another format or
// of the wrong shape, with what was found and what is allowed; PermissionDenied, this user may not
// read it; ResourceExhausted, memory, descriptors or mappings would not suffice. `data` alone,
// `data.validation_fraction` or `data.context` stand first when the options themselves are wrong.
absl::StatusOr<Split> OpenData(const DataOptions& options);

}  // namespace tactus::data
