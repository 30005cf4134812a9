#include "agent/data/npy_dataset.h"

#include <utility>

#include "agent/data/annotate.h"
#include "agent/data/npy_file.h"
#include "agent/data/pair_dataset.h"
#include "agent/data/split.h"

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
  absl::StatusOr<StoredArray> inputs = ReadNpy(files.inputs);
  if (!inputs.ok()) return Annotate("inputs: ", inputs.status());
  absl::StatusOr<StoredArray> targets = ReadNpy(files.targets);
  if (!targets.ok()) return Annotate("targets: ", targets.status());
  absl::StatusOr<std::shared_ptr<const Dataset>> pairs =
      PairColumns(InputColumn(*std::move(inputs)), ValueColumn(*std::move(targets)));
  if (!pairs.ok()) return pairs.status();
  return SplitSamples(*std::move(pairs), validation_fraction);
}

}  // namespace tactus::data
