// Models with buffers, invented examples and a folder for files: what every test of this folder
// needs.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/model/model.h"

namespace tactus::model {

// A span of zeros that starts at a cache line.
class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t size);

  std::span<float> span() const { return span_; }

 private:
  std::vector<float> storage_ = {};
  std::span<float> span_;
};

// A model bound to its two buffers. Fails the process when the options are refused.
struct BoundModel {
  explicit BoundModel(const ModelOptions& options);

  using Ready = std::function<void(std::size_t segment)>;

  // Model::ForwardBackward, of which the gradients are added to `gradients`; then `ready`, if set,
  // is told of the segment.
  absl::Status Pass(const Examples& examples, const Ready& ready = {});
  // Sum over the examples of the losses, by a pass that has to go well. The sum of losses is zero
  // afterwards.
  double Step(const Examples& examples, const Ready& ready = {});
  // The same loss in evaluation mode.
  double EvaluateLoss(const Examples& examples);
  void ClearGradients();
  std::vector<float> Gradients() const;
  std::vector<float> Weights() const;

  std::unique_ptr<Model> model;
  AlignedFloats parameters;
  AlignedFloats gradients;
  double loss_sum = 0;
};

// What an invented tensor holds: float32 are normal, int64 and uint8 are below `limit`.
struct TensorChoice {
  data::ElementType type = data::ElementType::kFloat32;
  std::vector<std::int64_t> shape = {};  // of a sample
  std::uint64_t limit = 1;
};

// Examples with random contents, always the same for the same choice.
class ExampleSet {
 public:
  ExampleSet(std::uint64_t count, const TensorChoice& inputs, const TensorChoice& targets);

  Examples All() const { return Range(0, count_); }
  Examples Range(std::uint64_t first, std::uint64_t count) const;

 private:
  std::uint64_t count_;
  data::TensorSpec input_spec_;
  data::TensorSpec target_spec_;
  std::vector<std::byte> inputs_ = {};
  std::vector<std::byte> targets_ = {};
};

ExampleSet Tokens(std::uint64_t count, std::int64_t context);  // for bytes-lm
ExampleSet Images(std::uint64_t count, std::int64_t side,
                  std::uint64_t classes = 10);  // 3 channels
ExampleSet Vectors(std::uint64_t count, std::int64_t width,
                   std::uint64_t classes);  // one class each

// A folder that goes with the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t CountFiles() const;

 private:
  std::filesystem::path folder_;
};

void WriteBytes(const std::string& path, std::span<const std::byte> bytes);
std::string ReadText(const std::string& path);

}  // namespace tactus::model
