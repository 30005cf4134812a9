#include "agent/data/pair_dataset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  TensorSpec spec;      // has as many elements a sample as the array
  bool scaled = false;  // bytes, as float32 over 255
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

// IEEE 754's binary16.
float FromHalf(std::uint16_t half) {
  constexpr int kMantissaBits = 10;
  constexpr int kBias = 15;
  const int exponent = (half >> kMantissaBits) & 0x1f;
  const int mantissa = half & 0x3ff;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0x1f) {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    return mantissa == 0 ? sign * kInfinite : std::numeric_limits<float>::quiet_NaN();
  }
  const int whole = exponent == 0 ? mantissa : mantissa | (1 << kMantissaBits);
  return sign *
         std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - kBias - kMantissaBits);
}

// Calls `with` with a number of the type that is stored and what makes a number of its bytes.
template <typename With>
void OfStored(StoredType type, const With& with) {
  constexpr auto kAsIs = [](auto value) { return value; };
  switch (type) {
    case StoredType::kBool:
      return with(std::uint8_t{}, [](std::uint8_t value) { return std::uint8_t{value != 0}; });
    case StoredType::kInt8:
      return with(std::int8_t{}, kAsIs);
    case StoredType::kUint8:
      return with(std::uint8_t{}, kAsIs);
    case StoredType::kInt16:
      return with(std::int16_t{}, kAsIs);
    case StoredType::kUint16:
      return with(std::uint16_t{}, kAsIs);
    case StoredType::kInt32:
      return with(std::int32_t{}, kAsIs);
    case StoredType::kInt64:
      return with(std::int64_t{}, kAsIs);
    case StoredType::kFloat16:
      return with(std::uint16_t{}, FromHalf);
    case StoredType::kFloat32:
      return with(float{}, kAsIs);
    case StoredType::kFloat32BigEndian:
      return with(std::uint32_t{}, [](std::uint32_t value) {
        return std::bit_cast<float>(__builtin_bswap32(value));
      });
    case StoredType::kFloat64:
      return with(double{}, kAsIs);
  }
}

template <typename To>
void ConvertTo(StoredType type, const std::uint8_t* from, std::size_t count, std::byte* to) {
  OfStored(type, [&]<typename From>(From, const auto& read) {
    ConvertElements<From>(from, count, to,
                          [&read](From value) { return static_cast<To>(read(value)); });
  });
}

void CopySample(const Column& column, std::uint64_t index, std::byte* to) {
  const std::size_t count = column.spec.ElementsPerSample();
  const StoredType type = column.array.type;
  const std::uint8_t* const from = column.array.elements() + index * count * SizeOf(type);
  if (column.scaled) {
    return ConvertElements<std::uint8_t>(from, count, to,
                                         [](std::uint8_t value) { return kScaledBytes[value]; });
  }
  switch (column.spec.type) {
    case ElementType::kFloat32:
      return ConvertTo<float>(type, from, count, to);
    case ElementType::kInt64:
      return ConvertTo<std::int64_t>(type, from, count, to);
    case ElementType::kUint8:
    case ElementType::kBool:
      return ConvertTo<std::uint8_t>(type, from, count, to);
  }
}

class PairDataset final : public Dataset {
 public:
  PairDataset(std::vector<Column> inputs, Column targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {
    for (const Column& column : inputs_) specs_.push_back(column.spec);
  }

  std::uint64_t size() const override { return targets_.array.samples(); }
  const std::vector<TensorSpec>& inputs() const override { return specs_; }
  const TensorSpec& targets() const override { return targets_.spec; }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    CheckRead(*this, indices, inputs, targets);
    const TensorPlaces places = PlacesOf(specs_, indices.size());
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      CopySamples(inputs_[k], indices, inputs.data() + places.offsets[k]);
    }
    CopySamples(targets_, indices, targets.data());
  }

 private:
  static void CopySamples(const Column& column, std::span<const std::uint64_t> indices,
                          std::byte* to) {
    const std::size_t bytes = column.spec.BytesPerSample();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      CopySample(column, indices[i], to + i * bytes);
    }
  }

  const std::vector<Column> inputs_;
  const Column targets_;
  std::vector<TensorSpec> specs_;  // of the inputs
};

bool IsFloat(StoredType type) {
  return type == StoredType::kFloat16 || type == StoredType::kFloat32 ||
         type == StoredType::kFloat32BigEndian || type == StoredType::kFloat64;
}

// The specification of samples of `array` as type `type`: its shape without the first dimension.
TensorSpec SampleSpec(const StoredArray& array, ElementType type) {
  return {.type = type, .shape = {array.shape.begin() + 1, array.shape.end()}};
}

// A column whose values are kept: integers (bytes too) become int64, the others float32.
Column ValueColumn(StoredArray array) {
  const ElementType type = IsFloat(array.type) ? ElementType::kFloat32 : ElementType::kInt64;
  TensorSpec spec = SampleSpec(array, type);
  return {.array = std::move(array), .spec = std::move(spec)};
}

Column IdxInputs(StoredArray array) {
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  if (spec.shape.size() == 2) spec.shape.insert(spec.shape.begin(), 1);
  const bool scaled = array.type == StoredType::kUint8;
  return {.array = std::move(array), .spec = std::move(spec), .scaled = scaled};
}

Column NpyInputs(StoredArray array) {
  const bool images = array.type == StoredType::kUint8 && array.shape.size() >= kImageDimensionsMin;
  const bool flags = array.type == StoredType::kBool;
  if (!images && !flags) return ValueColumn(std::move(array));
  TensorSpec spec = SampleSpec(array, flags ? ElementType::kBool : ElementType::kFloat32);
  return {.array = std::move(array), .spec = std::move(spec), .scaled = images};
}

// A type that a model may be given, and which files have what fits it.
struct InputType {
  const char* name;
  ElementType type;
  bool scaled;
  const char* needs;
  bool (*fits)(StoredType type);
};

constexpr InputType kInputTypes[] = {
    {"float32", ElementType::kFloat32, false, "numbers", [](StoredType) { return true; }},
    {"scaled", ElementType::kFloat32, true, "uint8",
     [](StoredType type) { return type == StoredType::kUint8; }},
    {"int64", ElementType::kInt64, false, "integers",
     [](StoredType type) { return !IsFloat(type); }},
    {"uint8", ElementType::kUint8, false, "uint8",
     [](StoredType type) { return type == StoredType::kUint8; }},
    {"bool", ElementType::kBool, false, "bool",
     [](StoredType type) { return type == StoredType::kBool; }},
};

// The column of one input, as `type` says; empty: as suits the file.
absl::StatusOr<Column> TypedInputs(StoredArray array, const std::string& type) {
  if (type.empty()) return NpyInputs(std::move(array));
  for (const InputType& known : kInputTypes) {
    if (type != known.name) continue;
    if (!known.fits(array.type)) {
      return absl::InvalidArgumentError(Quoted(type) + " is for files of " + known.needs +
                                        ", and " + Quoted(array.file.path()) + " has others");
    }
    TensorSpec spec = SampleSpec(array, known.type);
    return Column{.array = std::move(array), .spec = std::move(spec), .scaled = known.scaled};
  }
  return absl::InvalidArgumentError(Quoted(type) +
                                    " is unknown; allowed: float32, scaled, int64, uint8, bool");
}

// What `field` names has as many samples as the first inputs.
absl::Status CheckSamples(const std::string& field, const StoredArray& array,
                          const StoredArray& inputs) {
  if (inputs.samples() == array.samples()) return absl::OkStatus();
  return AtField(field, absl::InvalidArgumentError(
                            Quoted(array.file.path()) + " has " + std::to_string(array.samples()) +
                            " samples, but the inputs " + Quoted(inputs.file.path()) + " have " +
                            std::to_string(inputs.samples())));
}

}  // namespace

absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction) {
  if (!files.more_inputs.empty() || !files.input_types.empty()) {
    return AtField(files.more_inputs.empty() ? "input_types" : "more_inputs",
                   absl::InvalidArgumentError("IDX files are one input, of float32; allowed with "
                                              "data.numpy"));
  }
  absl::StatusOr<StoredArray> inputs = ReadIdx(files.inputs);
  if (!inputs.ok()) return AtField("inputs", inputs.status());
  absl::StatusOr<StoredArray> targets = ReadIdx(files.targets);
  if (!targets.ok()) return AtField("targets", targets.status());
  if (absl::Status s = CheckSamples("targets", *targets, *inputs); !s.ok()) return s;
  std::vector<Column> columns;
  columns.push_back(IdxInputs(*std::move(inputs)));
  return SplitSamples(
      std::make_shared<const PairDataset>(std::move(columns), ValueColumn(*std::move(targets))),
      validation_fraction);
}

absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction) {
  std::vector<std::string> paths = {files.inputs};
  paths.insert(paths.end(), files.more_inputs.begin(), files.more_inputs.end());
  if (!files.input_types.empty() && files.input_types.size() != paths.size()) {
    return AtField("input_types", absl::InvalidArgumentError(
                                      std::to_string(files.input_types.size()) + " for " +
                                      std::to_string(paths.size()) + " inputs; allowed: as many"));
  }
  std::vector<StoredArray> arrays;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    absl::StatusOr<StoredArray> array = ReadNpy(paths[i]);
    const std::string field = i == 0 ? "inputs" : "more_inputs[" + std::to_string(i - 1) + "]";
    if (!array.ok()) return AtField(field, array.status());
    arrays.push_back(*std::move(array));
    if (absl::Status s = CheckSamples(field, arrays.back(), arrays.front()); !s.ok()) return s;
  }
  absl::StatusOr<StoredArray> targets = ReadNpy(files.targets);
  if (!targets.ok()) return AtField("targets", targets.status());
  if (absl::Status s = CheckSamples("targets", *targets, arrays.front()); !s.ok()) return s;
  std::vector<Column> columns;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    absl::StatusOr<Column> column =
        TypedInputs(std::move(arrays[i]), files.input_types.empty() ? "" : files.input_types[i]);
    if (!column.ok()) {
      return AtField("input_types[" + std::to_string(i) + "]", column.status());
    }
    columns.push_back(*std::move(column));
  }
  return SplitSamples(
      std::make_shared<const PairDataset>(std::move(columns), ValueColumn(*std::move(targets))),
      validation_fraction);
}

}  // namespace tactus::data
