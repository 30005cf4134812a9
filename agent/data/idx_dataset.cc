#include "agent/data/idx_dataset.h"

#include <utility>

#include "agent/data/annotate.h"
#include "agent/data/idx_file.h"
#include "agent/data/pair_dataset.h"
#include "agent/data/split.h"

namespace tactus::data {
namespace {

Column InputColumn(StoredArray array) {
  TensorSpec spec = SampleSpec(array, ElementType::kFloat32);
  if (spec.shape.size() == 2) spec.shape.insert(spec.shape.begin(), 1);
  return {.array = std::move(array), .spec = std::move(spec)};
}

}  // namespace

absl::StatusOr<Split> OpenIdx(const DataOptions::FilePair& files, double validation_fraction) {
  absl::StatusOr<StoredArray> inputs = ReadIdx(files.inputs);
  if (!inputs.ok()) return Annotate("inputs: ", inputs.status());
  absl::StatusOr<StoredArray> targets = ReadIdx(files.targets);
  if (!targets.ok()) return Annotate("targets: ", targets.status());
  absl::StatusOr<std::shared_ptr<const Dataset>> pairs =
      PairColumns(InputColumn(*std::move(inputs)), ValueColumn(*std::move(targets)));
  if (!pairs.ok()) return pairs.status();
  return SplitSamples(*std::move(pairs), validation_fraction);
}

}  // namespace tactus::data
