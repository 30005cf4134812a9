#include "agent/torchscript/split_model.h"

#include <algorithm>

#include "protocol/result_names.h"

namespace tactus::torchscript {

absl::StatusOr<std::vector<std::string>> SplitModel::WriteDense(std::span<const float> dense,
                                                                const std::string& directory) {
  const absl::Status saved = model_.SaveDense(dense, directory + "/" + protocol::kModelFile,
                                              directory + "/" + protocol::kWeightsFile);
  if (!saved.ok()) return saved;
  return std::vector<std::string>{protocol::kModelFile, protocol::kWeightsFile};
}

absl::Status SplitModel::Run(Passes& passes, std::span<const std::uint64_t> indices,
                             std::uint32_t ceiling, std::span<const std::uint64_t> likely_next) {
  const absl::StatusOr<std::uint64_t> most = model_.MostOf(indices.size());
  if (!most.ok()) return most.status();
  passes.BeginSum();
  for (std::uint64_t begun = 0; begun == 0 || begun < *most; begun += ceiling) {
    const auto piece = indices.first(std::min<std::size_t>(indices.size(), ceiling));
    indices = indices.subspan(piece.size());
    const bool last = begun + ceiling >= *most;
    const auto next = indices.first(std::min<std::size_t>(indices.size(), ceiling));
    if (absl::Status s = passes.ForwardBackward(piece, last ? likely_next : next, {}); !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

}  // namespace tactus::torchscript
