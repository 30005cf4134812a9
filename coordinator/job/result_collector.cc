#include "coordinator/job/result_collector.h"

#include <algorithm>

#include "base/check.h"

namespace tactus::job {
ResultCollector::ResultCollector(std::uint32_t members, const EndingRecord& ending)
    : finished_(members), excused_(members), evaluated_(ending.evaluated) {
  for (const FinishedMember& member : ending.finished) {
    if (member.rank < members) finished_[member.rank] = member.message;
  }
  for (const ArtifactRecord& artifact : ending.artifacts) AddArtifact(artifact);
  for (const std::uint32_t rank : ending.excused) {
    if (rank < members) Excuse(rank);
  }
}

EndingRecord ResultCollector::ending() const {
  EndingRecord ending{.evaluated = evaluated_};
  for (std::uint32_t rank = 0; rank < finished_.size(); ++rank) {
    if (finished_[rank]) ending.finished.push_back({.rank = rank, .message = *finished_[rank]});
    if (excused_[rank]) ending.excused.push_back(rank);
  }
  for (const auto& [path, artifact] : artifacts_) ending.artifacts.push_back(artifact);
  return ending;
}

const ArtifactRecord* ResultCollector::Find(const std::string& path) const {
  const auto found = artifacts_.find(path);
  return found == artifacts_.end() ? nullptr : &found->second;
}

void ResultCollector::SetFinished(std::uint32_t rank, const FinishedMessage& message) {
  if (!finished_[rank]) finished_[rank] = message;
}

bool ResultCollector::AllFinished() const {
  for (std::uint32_t rank = 0; rank < finished_.size(); ++rank) {
    if (Owes(rank)) return false;
  }
  return true;
}

std::optional<std::uint32_t> ResultCollector::OddRank() const {
  TACTUS_CHECK(AllFinished());
  for (std::uint32_t rank = 1; rank < finished_.size(); ++rank) {
    const std::optional<FinishedMessage>& last = finished_[rank];
    if (last && last->parameters_hash != leader().parameters_hash) return rank;
  }
  return std::nullopt;
}

std::vector<std::string> ResultCollector::MissingFiles() const {
  std::vector<std::string> missing;
  for (const std::string& file : leader().files) {
    if (!artifacts_.contains(file)) missing.push_back(file);
  }
  return missing;
}

ResultRecord ResultCollector::Make(double own_speed_sum) const {
  const FinishedMessage& last = leader();
  ResultRecord result{.train_loss = last.train_loss,
                      .rounds = last.rounds,
                      .samples = last.samples_global,
                      .epochs = last.epochs,
                      .train_seconds = last.train_seconds,
                      .stop_reason = last.reason};
  // In the order in which rank 0 named them; files that it did not name are no part of the result.
  for (const std::string& file : last.files) result.artifacts.push_back(artifacts_.at(file));
  if (evaluated_) {
    result.validation_loss = evaluated_->loss;
    result.validation_accuracy = evaluated_->accuracy;
    result.validation_samples = evaluated_->samples;
    result.validation_rounds = evaluated_->rounds;
  }
  if (own_speed_sum > 0 && last.train_seconds > 0) {
    result.utilisation =
        static_cast<double>(last.samples_global) / last.train_seconds / own_speed_sum;
  }
  return result;
}

std::optional<CheckpointRecord> StartFrom(const JobRecord& record) {
  if (!record.result) return record.checkpoint;
  const std::vector<ArtifactRecord>& files = record.result->artifacts;
  // Of versions that did not say a file's hash, nobody can ask for it.
  const auto named = [&](const char* name) {
    return std::ranges::find_if(files, [name](const ArtifactRecord& file) {
      return file.path == name && !file.sha256.empty();
    });
  };
  if (const auto file = named(kCheckpointFile); file != files.end()) {
    const Progress& progress = record.progress;
    return CheckpointRecord{.sha256 = file->sha256,
                            .size_bytes = file->size_bytes,
                            .rounds = record.result->rounds,
                            .epoch = progress.epoch,
                            .epoch_consumed = progress.epoch_consumed,
                            .samples = record.result->samples,
                            .loss = record.result->train_loss,
                            .elapsed_seconds = record.result->train_seconds};
  }
  if (const auto file = named(kWeightsFile); file != files.end()) {
    return CheckpointRecord{.sha256 = file->sha256, .size_bytes = file->size_bytes};
  }
  return record.checkpoint;
}

ResultRecord CheckpointResult(const JobRecord& record) {
  TACTUS_CHECK(record.checkpoint.has_value());
  const CheckpointRecord& checkpoint = *record.checkpoint;
  return {.artifacts = {{.path = kCheckpointFile,
                         .size_bytes = checkpoint.size_bytes,
                         .sha256 = checkpoint.sha256}},
          .train_loss = record.progress.loss,
          .rounds = checkpoint.rounds,
          .samples = record.progress.samples,
          .epochs = record.progress.epoch,
          .train_seconds = record.progress.elapsed_seconds,
          .stop_reason = record.cancel_reason};
}

}  // namespace tactus::job
