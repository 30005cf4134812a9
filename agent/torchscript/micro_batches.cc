#include "agent/torchscript/micro_batches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace tactus::torchscript {
namespace {

bool IsOutOfMemory(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted;
}

absl::Status TooLarge(const std::string& where, const absl::Status& cause) {
  return absl::ResourceExhaustedError(
      "out of memory " + where +
      ", taken one by one, so that adapt.batch.micro_batch cannot help; use a smaller model or a "
      "device with more free memory: " +
      std::string(cause.message()));
}

absl::Status TooLate(const engine::Batch& batch, std::uint64_t samples, const absl::Status& cause) {
  return absl::ResourceExhaustedError(
      "out of memory in round " + std::to_string(batch.round) + " in a batch of " +
      std::to_string(batch.indices.size()) +
      " samples whose reductions had begun, so that it cannot be repeated in smaller pieces; set "
      "adapt.batch.micro_batch below " +
      std::to_string(samples) +
      ", or see what else takes the device's memory: " + std::string(cause.message()));
}

}  // namespace

MicroBatches::MicroBatches(Passes& passes, std::uint32_t ceiling, Lowered lowered)
    : passes_(passes), ceiling_(ceiling), lowered_(std::move(lowered)) {
  TACTUS_CHECK(ceiling_ >= 1);
}

absl::Status MicroBatches::TryOut(std::span<const std::uint64_t> indices) {
  absl::Status status;
  for (std::size_t done = 0; done < indices.size();) {
    const std::size_t count = std::min<std::size_t>(ceiling_, indices.size() - done);
    status = passes_.TryOut(indices.subspan(done, count));
    if (status.ok()) {
      done += count;
    } else if (!IsOutOfMemory(status)) {
      return status;
    } else if (!Lower(count)) {
      return TooLarge("when trying the model out on " + std::to_string(indices.size()) + " samples",
                      status);
    }
  }
  return absl::OkStatus();
}

absl::Status MicroBatches::Run(const engine::Batch& batch, const BatchContext& context) {
  if (batch.first_of_sum) {
    added_.clear();
    passes_.BeginSum();
  }
  std::uint64_t largest = batch.indices.size();  // batch of the sum
  for (const auto& indices : added_) largest = std::max<std::uint64_t>(largest, indices.size());
  reducing_ = false;
  absl::Status status = RunPieces(batch.indices, context);
  while (IsOutOfMemory(status)) {
    const std::uint64_t samples = std::min<std::uint64_t>(largest, ceiling_);
    if (reducing_) return TooLate(batch, samples, status);
    if (!Lower(samples)) {
      return TooLarge("in round " + std::to_string(batch.round) + " in a batch of " +
                          std::to_string(batch.indices.size()) + " samples",
                      status);
    }
    status = RunAnew(batch, context);
  }
  if (status.ok()) added_.push_back(batch.indices);
  return status;
}

// With what was added to the sums before.
absl::Status MicroBatches::RunAnew(const engine::Batch& batch, const BatchContext& context) {
  passes_.GoBack();
  for (const auto& indices : added_) {
    if (absl::Status s = RunPieces(indices, {}); !s.ok()) return s;
  }
  return RunPieces(batch.indices, context);
}

// Equal cuts for equal batches, whether it is their first time or not.
absl::Status MicroBatches::RunPieces(std::span<const std::uint64_t> indices,
                                     const BatchContext& context) {
  while (!indices.empty()) {
    const auto piece = FirstPiece(indices);
    indices = indices.subspan(piece.size());
    const bool last = indices.empty();
    const absl::Status status = passes_.ForwardBackward(
        piece, FirstPiece(last ? context.likely_next : indices),
        last && piece.size() <= proven_ ? Announcing(context.ready) : SegmentReady());
    if (!status.ok()) return status;
    proven_ = std::max<std::uint64_t>(proven_, piece.size());
  }
  return absl::OkStatus();
}

std::span<const std::uint64_t> MicroBatches::FirstPiece(
    std::span<const std::uint64_t> indices) const {
  return indices.first(std::min<std::size_t>(ceiling_, indices.size()));
}

SegmentReady MicroBatches::Announcing(const SegmentReady& ready) {
  if (!ready) return {};
  return [this, &ready](std::size_t segment) {
    reducing_ = true;
    ready(segment);
  };
}

// To half of a pass of so many samples. False: that was a single one.
bool MicroBatches::Lower(std::uint64_t samples) {
  if (samples <= 1) return false;
  ceiling_ = static_cast<std::uint32_t>(samples / 2);
  proven_ = 0;
  if (lowered_) lowered_(ceiling_);
  return true;
}

}  // namespace tactus::torchscript
