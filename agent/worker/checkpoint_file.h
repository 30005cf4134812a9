// The checkpoint: one file from which a group of any size goes on with a job.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/engine/combine/residuals.h"
#include "agent/engine/engine_state.h"
#include "cuda/ops/segments.h"
#include "protocol/worker_messages.h"

namespace tactus::worker {

using protocol::kCheckpointFile;

// What had the least validation loss so far.
struct BestCopy {
  std::vector<float> parameters{};  // [cuda::FlatLength(segments)]
  std::vector<float> buffers{};     // as Model::ReadBuffers has them
};

struct Checkpoint {
  engine::EngineState state{};
  std::vector<float> parameters{};  // [cuda::FlatLength(segments)]
  std::vector<float> buffers{};     // as Model::ReadBuffers has them
  // By rank of the group's members, or by replica where these have parts of the model. Written
  // here, and read by CheckpointedResiduals.
  std::vector<engine::Residuals> residuals{};
  // Null: none is kept. Shared with the worker, which does not change it and takes another one.
  std::shared_ptr<const BestCopy> best{};
};

// What a checkpoint must fit: the job's model, optimizer and data.
struct CheckpointFit {
  const cuda::SegmentTable& segments;
  std::size_t buffers = 0;            // elements
  std::size_t optimizer_buffers = 0;  // engine::StateBuffers(optimizer)
  bool lamb = false;                  // the optimizer is
  std::uint64_t train_samples = 1;  // in an epoch
  std::uint64_t data_samples = 0;   // from which a subset is chosen; 0: not known
};

// Writes a safetensors file beside `path` and renames it:
//
//   parameters.NAME, optimizer.0.NAME, optimizer.1.NAME, block_momentum.NAME,
//   fresh_moment.NAME F32, for each segment NAME in its own shape; only what there is
//   best.NAME, best_buffers
//                     likewise, of what had the least validation loss; only where it is kept
//   buffers           F32 [n]
//   ledger.returned   U64 [n, 2], positions [begin, end) that are unused below ledger.fresh
//   subset.samples, subset.weights
//                     U64 [n, 1], F32 [n]: Subset's lists; only where there are any
//   losses            F64 [n, 3], of a round: loss sum and samples at common parameters, steps
//   local_losses      F64 [n, 2], of the same: loss sum and samples at members' own; only where
//                     there are any
//   one_bit.scales, one_bit.layers
//                     F64 [segments, 1] and [segments, 3]: OneBitState's lists, a row as LayerRatio
//                     has it; only where there are any
//   residuals.RANK.KIND.NAME, residuals.RANK.KIND
//                     see checkpoint_residuals.h; only where there is any
//   __metadata__      tactus.schema, the counters by name, and content_hash over all of these
//
// Errors: tensors::AtomicFile's.
absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const cuda::SegmentTable& segments,
                             const std::string& path, const std::stop_token& stop = {});

// Reads a file of any origin and checks it whole. Padding comes back as zeros.
// Errors, all beginning with "checkpoint: ": NotFound, PermissionDenied; DataLoss: damaged, down to
// what is no safetensors file; InvalidArgument: another schema, or of another model, optimizer or
// data.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path, const CheckpointFit& fit);

// Whether a safetensors file is a checkpoint; else it has weights alone, as a result's. Errors: as
// ReadCheckpoint.
absl::StatusOr<bool> IsCheckpoint(const std::string& path);

// Reads a file that was just written, past the memory that it was written through, and checks that
// its content is what was written. Errors: as of ReadCheckpoint; Internal, the disk does not give
// it back; Cancelled, it was stopped.
absl::Status CheckCheckpoint(const std::string& path, const std::stop_token& stop = {});

}  // namespace tactus::worker
