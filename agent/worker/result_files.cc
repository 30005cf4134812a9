#include "agent/worker/result_files.h"

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "agent/tensors/atomic_file.h"
#include "nlohmann/json.hpp"
#include "protocol/result_names.h"

namespace tactus::worker {
namespace {

using Json = nlohmann::ordered_json;

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json Summary(const ResultFacts& facts) {
  const FinishedMessage& finished = facts.finished;
  Json summary = {{"job", facts.job_id},
                  {"stop_reason", finished.reason},
                  {"workers", facts.workers},
                  {"rounds", finished.rounds},
                  {"epochs", finished.epochs},
                  {"samples", finished.samples_global},
                  {"train_seconds", Finite(finished.train_seconds)},
                  {"train_loss", Finite(finished.train_loss)}};
  if (facts.evaluated.samples > 0) {
    summary["validation"] = {{"loss", Finite(facts.evaluated.loss)},
                             {"samples", facts.evaluated.samples},
                             {"rounds", facts.evaluated.rounds}};
    if (facts.evaluated.accuracy >= 0) {
      summary["validation"]["accuracy"] = Finite(facts.evaluated.accuracy);
    }
  }
  return summary;
}

absl::Status WriteText(const std::string& text, const std::string& path) {
  absl::StatusOr<std::unique_ptr<tensors::AtomicFile>> file = tensors::AtomicFile::Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status s = (*file)->Append(text.data(), text.size()); !s.ok()) return s;
  return (*file)->Commit();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteResult(const WriteModel& write,
                                                     const ResultFacts& facts,
                                                     const std::string& directory) {
  absl::StatusOr<std::vector<std::string>> files = write(directory);
  if (!files.ok()) return files.status();
  const std::string path = directory + "/" + protocol::kSummaryFile;
  if (absl::Status s = WriteText(Summary(facts).dump(2) + "\n", path); !s.ok()) return s;
  files->emplace_back(protocol::kSummaryFile);
  return files;
}

}  // namespace tactus::worker
