#include "agent/data/npy_dataset.h"

#include <utility>

#include "agent/data/npy_file.h"
#include "agent/data/pair_dataset.h"

namespace tactus::data {
namespace {

constexpr std::size_t kImageDimensionsMin = 3;  // [n, h, w]

Column InputColumn(StoredArray array) {
  const bool images = array.type == StoredType::kUint8 && array.shape.size() >= kImageDimensionsMin;
  if (!images) return ValueColumn(std::move(array));
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  return {.array = std::move(array), .spec = std::move(spec)};
}

}  // namespace

absl::StatusOr<Split> OpenNumpy(const DataOptions::FilePair& files, double validation_fraction) {
  return OpenPair(files, {.read = ReadNpy, .inputs = InputColumn}, validation_fraction);
}

}  // namespace tactus::data
