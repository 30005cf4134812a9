#include "agent/data/pair_dataset.h"

#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/field_error.h"
#include "agent/data/sample_bytes.h"
#include "agent/data/split.h"
#include "base/check.h"

namespace tactus::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files are mapped as little-endian");

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

}  // namespace

TensorSpec SampleSpec(const StoredArray& array, ElementType type) {
  return {.type = type, .shape = {array.shape.begin() + 1, array.shape.end()}};
}

Column ValueColumn(StoredArray array) {
  const ElementType type = IsInteger(array.type) ? ElementType::kInt64 : ElementType::kFloat32;
  TensorSpec spec = SampleSpec(array, type);
  return {.array = std::move(array), .spec = std::move(spec)};
}

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

}  // namespace tactus::data
