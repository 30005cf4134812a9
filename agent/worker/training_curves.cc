#include "agent/worker/training_curves.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tactus::worker {
namespace {

// Text as a block that Markdown leaves alone.
std::string Verbatim(const std::string& text) {
  std::string block = "    ";
  for (const char c : text) {
    block.push_back(c);
    if (c == '\n') block.append("    ");
  }
  return block;
}

std::vector<Scalar> ScalarsOf(const policies::Report& report, const policies::Plan& plan,
                              std::optional<double> noise) {
  std::vector<Scalar> scalars;
  const auto add = [&scalars](std::string tag, double value) {
    scalars.push_back({.tag = std::move(tag), .value = static_cast<float>(value)});
  };
  add("train/loss", report.loss_mean_global);
  if (report.local_samples_global > 0) add("train/local_loss", report.local_loss_mean_global);
  add("train/learning_rate", report.learning_rate);
  add("train/gain", report.gain);
  add("train/gradient_norm", std::sqrt(report.gradient_norm2_global));
  add("train/epoch", static_cast<double>(report.epoch));
  add("adapt/global_batch", std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), 0.0));
  add("adapt/period", plan.period);
  add("adapt/orthogonality", report.orthogonality);
  if (noise) add("adapt/noise_scale", *noise);
  const std::size_t ranks =
      std::min<std::size_t>(plan.batch_sizes.size(), TrainingCurves::kRanksMax);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    add("adapt/batch/" + std::to_string(rank), plan.batch_sizes[rank]);
  }
  add("time/compute_seconds", report.compute_seconds);
  add("time/blocked_seconds", report.blocked_seconds);
  add("time/round_seconds", report.round_seconds);
  return scalars;
}

}  // namespace

absl::StatusOr<TrainingCurves> TrainingCurves::Open(const std::string& output_directory,
                                                    const std::string& job_text,
                                                    double wall_seconds) {
  absl::StatusOr<EventFile> file =
      EventFile::Open(output_directory + "/" + protocol::kCurvesFolder, wall_seconds);
  if (!file.ok()) return file.status();
  if (absl::Status s = file->AppendText(wall_seconds, 0, "job", Verbatim(job_text)); !s.ok())
    return s;
  return TrainingCurves(*std::move(file));
}

absl::Status TrainingCurves::Add(const policies::Report& report, const policies::Plan& plan,
                                 Duration trained, double wall_seconds) {
  noise_.Observe(report);
  const bool new_plan = plan.version != plan_version_;
  if (!new_plan && written_ && trained - *written_ < kEvery) return absl::OkStatus();
  written_ = trained;
  absl::Status status =
      file_.Append(wall_seconds, report.round, ScalarsOf(report, plan, noise_.Samples()));
  if (status.ok() && new_plan && !plan.reason.empty()) {
    status = file_.AppendText(wall_seconds, report.round, "plan", Verbatim(plan.reason));
  }
  plan_version_ = plan.version;
  return status;
}

absl::Status TrainingCurves::AddValidation(const protocol::ValidatedMessage& message,
                                           double wall_seconds) {
  std::vector<Scalar> scalars = {
      {.tag = "validation/loss", .value = static_cast<float>(message.loss)}};
  if (message.accuracy >= 0) {
    scalars.push_back(
        {.tag = "validation/accuracy", .value = static_cast<float>(message.accuracy)});
  }
  return file_.Append(wall_seconds, message.rounds, scalars);
}

}  // namespace tactus::worker
