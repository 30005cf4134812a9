// A model that is split over the devices of a mesh, as the trainee of job files has it.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/parallel/partitioned_model.h"
#include "agent/torchscript/passes.h"
#include "agent/worker/model_parts.h"

namespace tactus::torchscript {

// The member's part, and its passes. One thread.
class SplitModel final : public worker::ModelParts {
 public:
  // model: of two devices and more; outlives this.
  explicit SplitModel(model::PartitionedModel& model) : model_(model) {}

  const collective::MeshShape& shape() const override { return model_.shape(); }
  absl::StatusOr<bool> Join(const collective::MeshGroups& groups) override {
    return model_.Join(groups);
  }
  const cuda::SegmentTable& dense_segments() const override { return model_.dense_segments(); }
  const std::vector<bool>& counts() const override { return model_.counts(); }
  const std::vector<bool>& copies() const override { return model_.copies(); }
  absl::StatusOr<std::vector<float>> Gather(std::span<const float> own) override {
    return model_.GatherFlat(own);
  }
  std::vector<float> Cut(std::span<const float> dense) const override {
    return model_.CutFlat(dense);
  }
  std::vector<float> PutTogether(std::span<const std::span<const float>> by_rank) const override {
    return model_.JoinFlat(by_rank);
  }
  absl::StatusOr<std::vector<std::string>> WriteDense(std::span<const float> dense,
                                                      const std::string& directory) override;

  // The member's samples of a round, maybe none, in passes of `ceiling` at most: as many as who has
  // most samples needs. They begin a sum. Errors: Passes::ForwardBackward's, and Unavailable, the
  // mesh is over; nothing is tried again, as the others would have to.
  absl::Status Run(Passes& passes, std::span<const std::uint64_t> indices, std::uint32_t ceiling,
                   std::span<const std::uint64_t> likely_next);

 private:
  model::PartitionedModel& model_;
};

}  // namespace tactus::torchscript
