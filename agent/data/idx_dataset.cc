#include "agent/data/idx_dataset.h"

#include <utility>

#include "agent/data/idx_file.h"
#include "agent/data/pair_dataset.h"

namespace tactus::data {
namespace {

Column InputColumn(StoredArray array) {
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  if (spec.shape.size() == 2) spec.shape.insert(spec.shape.begin(), 1);
  return {.array = std::move(array), .spec = std::move(spec)};
}

}  // namespace

absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction) {
  return OpenPair(files, {.read = ReadIdx, .inputs = InputColumn}, validation_fraction);
}

}  // namespace tactus::data
