#include "tests/agent/model/model_support.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

namespace tactus::model {
namespace {

constexpr std::size_t kCacheLine = 64;

std::unique_ptr<Model> OpenOrDie(const ModelOptions& options) {
  absl::StatusOr<std::unique_ptr<Model>> model = Model::Open(options);
  if (!model.ok()) std::cerr << model.status() << "\n";
  TACTUS_CHECK(model.ok());
  return *std::move(model);
}

template <typename T>
void Put(std::span<std::byte> bytes, std::size_t index, T value) {
  std::memcpy(bytes.subspan(index * sizeof(T), sizeof(T)).data(), &value, sizeof(T));
}

std::vector<std::byte> Fill(std::uint64_t count, const TensorChoice& choice, Rng rng) {
  const data::TensorSpec spec{choice.type, choice.shape};
  std::vector<std::byte> bytes(count * spec.BytesPerSample());
  for (std::size_t i = 0; i < count * spec.ElementsPerSample(); ++i) {
    switch (choice.type) {
      case data::ElementType::kFloat32:
        Put(bytes, i, static_cast<float>(rng.Normal()));
        break;
      case data::ElementType::kInt64:
        Put(bytes, i, static_cast<std::int64_t>(rng.Below(choice.limit)));
        break;
      case data::ElementType::kUint8:
      case data::ElementType::kBool:
        Put(bytes, i, static_cast<std::uint8_t>(rng.Below(choice.limit)));
        break;
    }
  }
  return bytes;
}

}  // namespace

AlignedFloats::AlignedFloats(std::size_t size) : storage_(size + kCacheLine / sizeof(float)) {
  void* start = storage_.data();
  std::size_t space = storage_.size() * sizeof(float);
  TACTUS_CHECK(std::align(kCacheLine, size * sizeof(float), start, space) != nullptr);
  span_ = std::span(static_cast<float*>(start), size);
}

BoundModel::BoundModel(const ModelOptions& options)
    : model(OpenOrDie(options)),
      parameters(cuda::FlatLength(model->segments())),
      gradients(cuda::FlatLength(model->segments())) {
  model->Bind(parameters.span(), {&loss_sum, 1});
}

absl::Status BoundModel::Pass(const Examples& examples, const Ready& ready) {
  return model->ForwardBackward(examples, [&](const SegmentGradient& gradient) {
    const cuda::Segment& segment = model->segments()[gradient.segment];
    const std::span<float> sum = gradients.span().subspan(segment.offset, segment.length);
    for (std::size_t i = 0; gradient.values != nullptr && i < sum.size(); ++i) {
      sum[i] += gradient.values[i];
    }
    if (ready) ready(gradient.segment);
  });
}

double BoundModel::Step(const Examples& examples, const Ready& ready) {
  const absl::Status passed = Pass(examples, ready);
  if (!passed.ok()) std::cerr << passed << "\n";
  TACTUS_CHECK(passed.ok());
  return std::exchange(loss_sum, 0);
}

double BoundModel::EvaluateLoss(const Examples& examples) {
  const absl::StatusOr<EvaluationSums> sums = model->Evaluate(examples);
  if (!sums.ok()) std::cerr << sums.status() << "\n";
  TACTUS_CHECK(sums.ok());
  return sums->loss_sum;
}

void BoundModel::ClearGradients() {
  for (float& gradient : gradients.span()) gradient = 0;
}

std::vector<float> BoundModel::Gradients() const {
  return {gradients.span().begin(), gradients.span().end()};
}

std::vector<float> BoundModel::Weights() const {
  return {parameters.span().begin(), parameters.span().end()};
}

ExampleSet::ExampleSet(std::uint64_t count, const TensorChoice& inputs, const TensorChoice& targets)
    : count_(count),
      input_spec_{inputs.type, inputs.shape},
      target_spec_{targets.type, targets.shape},
      inputs_(Fill(count, inputs, Rng(1))),
      targets_(Fill(count, targets, Rng(2))) {}

Examples ExampleSet::Range(std::uint64_t first, std::uint64_t count) const {
  const std::size_t input = input_spec_.BytesPerSample();
  const std::size_t target = target_spec_.BytesPerSample();
  return {.count = count,
          .input_specs = {input_spec_},
          .target_spec = target_spec_,
          .inputs = std::span(inputs_).subspan(first * input, count * input),
          .targets = std::span(targets_).subspan(first * target, count * target)};
}

ExampleSet Tokens(std::uint64_t count, std::int64_t context) {
  const TensorChoice tokens{data::ElementType::kInt64, {context}, 256};
  return {count, tokens, tokens};
}

ExampleSet Images(std::uint64_t count, std::int64_t side, std::uint64_t classes) {
  return {count,
          {data::ElementType::kFloat32, {3, side, side}},
          {data::ElementType::kInt64, {}, classes}};
}

ExampleSet Vectors(std::uint64_t count, std::int64_t width, std::uint64_t classes) {
  return {count, {data::ElementType::kFloat32, {width}}, {data::ElementType::kInt64, {}, classes}};
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tactus-model-XXXXXX").string();
  TACTUS_CHECK(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::size_t ScratchFolder::CountFiles() const {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                std::filesystem::directory_iterator()));
}

void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  for (const std::byte byte : bytes) file.put(static_cast<char>(byte));
  TACTUS_CHECK(file.good());
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tactus::model
