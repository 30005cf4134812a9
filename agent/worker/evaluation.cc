#include "agent/worker/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace tactus::worker {
namespace {

absl::Status AllReduce(collective::Transport& transport, std::span<float> values) {
  const collective::Completion completion = transport.StartAllReduceSum(values)->Wait();
  if (completion.progress == collective::Progress::kDone) return absl::OkStatus();
  return absl::UnavailableError(completion.reason);
}

struct Stretch {
  std::uint64_t begin = 0, end = 0;
};

// Of the samples, those of a member of so many.
Stretch ShareOf(std::uint64_t samples, std::size_t rank, std::size_t size,
                std::span<const std::uint32_t> shares) {
  const auto sum = [&shares](std::size_t members) {
    return std::accumulate(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(members),
                           std::uint64_t{0});
  };
  const bool even = shares.size() != size || sum(size) == 0;
  const std::uint64_t all = even ? size : sum(size);
  // In 128 bits: samples times batch sizes may pass 64.
  const auto part = [&](std::size_t members) {
    const std::uint64_t before = even ? members : sum(members);
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(samples) * before / all);
  };
  return {.begin = part(rank), .end = part(rank + 1)};
}

// How often each member of a mesh evaluates: as often as who has most samples.
std::uint64_t PassesOf(std::uint64_t samples, std::size_t size,
                       std::span<const std::uint32_t> shares, std::uint64_t batch) {
  std::uint64_t most = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const auto [begin, end] = ShareOf(samples, rank, size, shares);
    most = std::max(most, (end - begin + batch - 1) / batch);
  }
  return most;
}

}  // namespace

absl::Status AverageBuffers(Trainee& trainee, collective::Transport& transport,
                            double own_samples) {
  if (transport.size() == 1) return absl::OkStatus();  // to the last bit
  std::vector<float> values = trainee.ReadBuffers();
  if (values.empty()) return absl::OkStatus();
  // A member's that are not finite would be everybody's: they do not count.
  const bool finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  const double weight = finite ? own_samples : 0;
  for (float& value : values) value = finite ? static_cast<float>(value * weight) : 0;
  values.push_back(static_cast<float>(weight));
  if (absl::Status status = AllReduce(transport, values); !status.ok()) return status;

  const float samples = values.back();
  values.pop_back();
  if (samples <= 0) return absl::OkStatus();  // nobody trained: all are as they were
  for (float& value : values) value /= samples;
  trainee.WriteBuffers(values);
  return absl::OkStatus();
}

absl::StatusOr<engine::Validation> Evaluate(Trainee& trainee, collective::Transport& transport,
                                            const EvaluationOptions& options) {
  const std::uint64_t samples = std::min(trainee.validation_samples(), options.samples_max);
  const auto size = static_cast<std::size_t>(transport.size());
  const auto [begin, end] =
      ShareOf(samples, static_cast<std::size_t>(transport.rank()), size, options.shares);

  model::EvaluationSums sums;
  std::vector<std::uint64_t> indices;
  std::uint64_t batch = trainee.evaluation_batch();
  const bool together = trainee.parts() != nullptr;
  const std::uint64_t passes = together ? PassesOf(samples, size, options.shares, batch) : 0;
  std::uint64_t passed = 0;
  for (std::uint64_t at = begin; at < end || passed < passes; at += indices.size(), ++passed) {
    options.beside();
    // Not at the end, which may be far: the others await this member's word of it.
    if (const std::vector<int> gone = transport.failed(); !gone.empty()) {
      return absl::UnavailableError("rank " + std::to_string(gone.front()) +
                                    ": closed the connection");
    }
    indices.resize(std::min(batch, end - at));
    std::iota(indices.begin(), indices.end(), at);
    const absl::StatusOr<model::EvaluationSums> part = trainee.Evaluate(indices);
    if (absl::IsResourceExhausted(part.status()) && indices.size() > 1 && !together) {
      // The same samples again, in halves from here on: without indices `at` stays where it is.
      batch = indices.size() / 2;
      indices.clear();
      continue;
    }
    if (!part.ok()) return part.status();
    sums.loss_sum += part->loss_sum;
    sums.correct_sum += part->correct_sum;
    sums.has_accuracy = part->has_accuracy;
  }

  std::array<float, 3> lanes = {static_cast<float>(sums.loss_sum),
                                static_cast<float>(sums.correct_sum),
                                sums.has_accuracy ? 1.0f : 0.0f};
  if (absl::Status status = AllReduce(transport, lanes); !status.ok()) return status;
  const double count = static_cast<double>(std::max<std::uint64_t>(samples, 1));
  return engine::Validation{.loss = lanes[0] / count,
                            .accuracy = lanes[2] > 0 ? lanes[1] / count : -1,
                            .samples = samples};
}

}  // namespace tactus::worker
