// What encodings had left with the members of a group, as it stands in a checkpoint:
//
//   residuals.RANK.KIND.NAME  F32, of what is of the vector, for each segment NAME in its own shape
//   residuals.RANK.KIND       F32 [n], of what says what that is of

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/engine/combine/residuals.h"
#include "agent/tensors/safetensors.h"
#include "cuda/ops/segments.h"

namespace tactus::worker {

// Refer to the values.
std::vector<tensors::NamedTensor> ResidualTensors(const std::vector<engine::Residuals>& by_rank,
                                                  const cuda::SegmentTable& segments);

// What a file of any origin has of it.
struct ResidualLayout {
  std::size_t members = 0;
  std::map<std::string, std::size_t> kinds{};  // elements; 0: as many as the vector
};
ResidualLayout ResidualsIn(const tensors::SafetensorsFile& file);

// All tensors of it, as they are to be.
std::vector<tensors::WantedTensor> Wanted(const ResidualLayout& layout,
                                          const cuda::SegmentTable& segments);

// Those of a file that ReadCheckpoint has read. They stay in it until one is asked for, as each of
// the members' is as long as the model.
class CheckpointedResiduals {
 public:
  // Errors: as of tensors::ReadSafetensors.
  static absl::StatusOr<CheckpointedResiduals> Open(const std::string& path,
                                                    const cuda::SegmentTable& segments);

  // Refers to this.
  engine::ResidualParts parts() const;

 private:
  CheckpointedResiduals(tensors::SafetensorsFile file, const cuda::SegmentTable& segments);

  engine::Residuals Of(std::size_t rank) const;

  tensors::SafetensorsFile file_;
  cuda::SegmentTable segments_;
  ResidualLayout layout_;
};

}  // namespace tactus::worker
