#include "agent/data/pair_dataset.h"

#include <array>
#include <bit>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/array.h"
#include "agent/data/field_error.h"
#include "agent/data/idx_file.h"
#include "agent/data/npy_file.h"
#include "agent/data/sample_bytes.h"
#include "agent/data/split.h"
#include "base/check.h"

namespace tactus::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files are mapped as little-endian");

constexpr std::size_t kImageDimensionsMin = 3;  // [n, h, w]

// An array and what its samples become.
struct Column {
  StoredArray array;
  // Has as many elements a sample as the array. Its type is kFloat32 (a byte becomes byte / 255)
  // or, where the array holds integers, kInt64 (values kept).
  TensorSpec spec;
};

constexpr std::array<float, 256> MakeScaledBytes() {
  std::array<float, 256> table = {};
  for (std::size_t value = 0; value < table.size(); ++value) {
    table[value] = static_cast<float>(value) / 255.0f;
  }
  return table;
}

constexpr std::array<float, 256> kScaledBytes = MakeScaledBytes();

// Converts `count` elements of type From by `convert`.
template <typename From, typename Convert>
void ConvertElements(const std::uint8_t* from, std::size_t count, std::byte* to, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    StoreElement(to, i, convert(LoadElement<From>(from, i)));
  }
}

constexpr auto kToInt64 = [](auto value) { return static_cast<std::int64_t>(value); };
constexpr auto kToFloat = [](auto value) { return static_cast<float>(value); };

void ConvertToInt64(StoredType type, const std::uint8_t* from, std::size_t count, std::byte* to) {
  switch (type) {
    case StoredType::kUint8:
      return ConvertElements<std::uint8_t>(from, count, to, kToInt64);
    case StoredType::kInt32:
      return ConvertElements<std::int32_t>(from, count, to, kToInt64);
    case StoredType::kInt64:
      return ConvertElements<std::int64_t>(from, count, to, kToInt64);
    case StoredType::kFloat32:
    case StoredType::kFloat32BigEndian:
    case StoredType::kFloat64:
      TACTUS_CHECK(false);
  }
}

void ConvertToFloat(StoredType type, const std::uint8_t* from, std::size_t count, std::byte* to) {
  switch (type) {
    case StoredType::kUint8:
      return ConvertElements<std::uint8_t>(from, count, to,
                                           [](std::uint8_t value) { return kScaledBytes[value]; });
    case StoredType::kInt32:
      return ConvertElements<std::int32_t>(from, count, to, kToFloat);
    case StoredType::kInt64:
      return ConvertElements<std::int64_t>(from, count, to, kToFloat);
    case StoredType::kFloat32:
      return ConvertElements<float>(from, count, to, kToFloat);
    case StoredType::kFloat32BigEndian:
      return ConvertElements<std::uint32_t>(from, count, to, [](std::uint32_t value) {
        return std::bit_cast<float>(__builtin_bswap32(value));
      });
    case StoredType::kFloat64:
      return ConvertElements<double>(from, count, to, kToFloat);
  }
}

void CopySample(const Column& column, std::uint64_t index, std::byte* to) {
  const std::size_t count = column.spec.ElementsPerSample();
  const std::uint8_t* const from =
      column.array.elements() + index * count * SizeOf(column.array.type);
  if (column.spec.type == ElementType::kInt64) {
    ConvertToInt64(column.array.type, from, count, to);
  } else {
    ConvertToFloat(column.array.type, from, count, to);
  }
}

class PairDataset final : public Dataset {
 public:
  PairDataset(Column inputs, Column targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  std::uint64_t size() const override { return inputs_.array.samples(); }
  const TensorSpec& inputs() const override { return inputs_.spec; }
  const TensorSpec& targets() const override { return targets_.spec; }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    CheckRead(*this, indices, inputs, targets);
    const std::size_t input_bytes = inputs_.spec.BytesPerSample();
    const std::size_t target_bytes = targets_.spec.BytesPerSample();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      CopySample(inputs_, indices[i], inputs.data() + i * input_bytes);
      CopySample(targets_, indices[i], targets.data() + i * target_bytes);
    }
  }

 private:
  const Column inputs_;
  const Column targets_;
};

bool IsInteger(StoredType type) {
  return type == StoredType::kUint8 || type == StoredType::kInt32 || type == StoredType::kInt64;
}

// The specification of samples of `array` as type `type`: its shape without the first dimension.
TensorSpec SampleSpec(const StoredArray& array, ElementType type) {
  return {.type = type, .shape = {array.shape.begin() + 1, array.shape.end()}};
}

// A column whose values are kept: integers (bytes too) become int64, the others float32.
Column ValueColumn(StoredArray array) {
  const ElementType type = IsInteger(array.type) ? ElementType::kInt64 : ElementType::kFloat32;
  TensorSpec spec = SampleSpec(array, type);
  return {.array = std::move(array), .spec = std::move(spec)};
}

Column IdxInputs(StoredArray array) {
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  if (spec.shape.size() == 2) spec.shape.insert(spec.shape.begin(), 1);
  return {.array = std::move(array), .spec = std::move(spec)};
}

Column NpyInputs(StoredArray array) {
  const bool images = array.type == StoredType::kUint8 && array.shape.size() >= kImageDimensionsMin;
  if (!images) return ValueColumn(std::move(array));
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  return {.array = std::move(array), .spec = std::move(spec)};
}

// Files with an array each.
struct PairFormat {
  absl::StatusOr<StoredArray> (*read)(const std::string& path);
  Column (*inputs)(StoredArray array);  // what the inputs' samples become; the targets' are kept
};

absl::StatusOr<Split> OpenPair(const DataOptions::FilePair& files, const PairFormat& format,
                               double validation_fraction) {
  absl::StatusOr<StoredArray> inputs = format.read(files.inputs);
  if (!inputs.ok()) return AtField("inputs", inputs.status());
  absl::StatusOr<StoredArray> targets = format.read(files.targets);
  if (!targets.ok()) return AtField("targets", targets.status());
  if (inputs->samples() != targets->samples()) {
    return AtField("targets", absl::InvalidArgumentError(Quoted(targets->file.path()) + " has " +
                                                         std::to_string(targets->samples()) +
                                                         " samples, but the inputs " +
                                                         Quoted(inputs->file.path()) + " have " +
                                                         std::to_string(inputs->samples())));
  }
  return SplitSamples(std::make_shared<const PairDataset>(format.inputs(*std::move(inputs)),
                                                          ValueColumn(*std::move(targets))),
                      validation_fraction);
}

}  // namespace

absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction) {
  return OpenPair(files, {.read = ReadIdx, .inputs = IdxInputs}, validation_fraction);
}

absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction) {
  return OpenPair(files, {.read = ReadNpy, .inputs = NpyInputs}, validation_fraction);
}

}  // namespace tactus::data
