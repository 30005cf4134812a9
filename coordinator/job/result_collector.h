// What a job's end consists of: every member's last word, the evaluation, and the result's files.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// Gathers the parts in whatever order they come. Files and evaluation are rank 0's.
class ResultCollector {
 public:
  // Goes on from what was on record.
  explicit ResultCollector(std::uint32_t members, const EndingRecord& ending = {});

  void SetFinished(std::uint32_t rank, const FinishedMessage& message);
  // All that it had to do is done; no last word is to come of it. Requires: not rank 0.
  void Excuse(std::uint32_t rank) { excused_[rank] = true; }
  void SetEvaluated(const EvaluatedMessage& message) { evaluated_ = message; }
  void AddArtifact(const ArtifactRecord& artifact) { artifacts_[artifact.path] = artifact; }

  // All of it, for the record.
  EndingRecord ending() const;

  bool Finished(std::uint32_t rank) const { return finished_[rank].has_value(); }
  // Its last word is to come.
  bool Owes(std::uint32_t rank) const { return !finished_[rank] && !excused_[rank]; }
  // Nobody owes a last word.
  bool AllFinished() const;

  // The first rank that ended with other parameters than rank 0. Requires: AllFinished().
  std::optional<std::uint32_t> OddRank() const;

  // Files that rank 0 named and that have not arrived. Requires: Finished(0).
  std::vector<std::string> MissingFiles() const;

  // Null: it has not arrived.
  const ArtifactRecord* Find(const std::string& path) const;

  // The last word of rank 0. Requires: Finished(0).
  const FinishedMessage& leader() const { return *finished_.front(); }

  // own_speed_sum [samples/s]: of all workers, each for itself; 0 leaves utilisation 0.
  // Requires: Finished(0) and no missing files.
  ResultRecord Make(double own_speed_sum) const;

 private:
  std::vector<std::optional<FinishedMessage>> finished_;  // by rank
  std::vector<bool> excused_;
  std::optional<EvaluatedMessage> evaluated_;
  std::map<std::string, ArtifactRecord> artifacts_;  // by path
};

// The result's weights, without what training goes on with.
inline constexpr const char* kWeightsFile = "model.safetensors";

// What another job can begin from: the checkpoint in the result of a cancelled job, the weights of
// a succeeded one, or the last checkpoint. With weights alone the other job begins at round 0.
// Nothing: there is none of these.
std::optional<CheckpointRecord> StartFrom(const JobRecord& record);

// What is left of a job that is cancelled while it holds no devices. Requires: a checkpoint.
ResultRecord CheckpointResult(const JobRecord& record);

}  // namespace tactus::job
