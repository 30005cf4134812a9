#include "agent/worker/drawn_curves.h"

#include <iostream>
#include <utility>

#include "agent/worker/clock.h"

namespace tactus::worker {

void DrawnCurves::Open(const std::string& output_directory, const std::string& job_text) {
  if (curves_) return;
  absl::StatusOr<TrainingCurves> curves =
      TrainingCurves::Open(output_directory, job_text, WallSeconds());
  if (curves.ok()) {
    curves_.emplace(*std::move(curves));
  } else {
    std::cerr << "no TensorBoard curves: " << curves.status().message() << '\n';
  }
}

void DrawnCurves::Add(const policies::Report& report, const policies::Plan& plan,
                      Duration trained) {
  if (curves_) Follow(curves_->Add(report, plan, trained, WallSeconds()));
}

void DrawnCurves::AddValidation(const protocol::ValidatedMessage& message) {
  if (curves_) Follow(curves_->AddValidation(message, WallSeconds()));
}

std::optional<std::string> DrawnCurves::name() const {
  return curves_ ? std::optional(curves_->name()) : std::nullopt;
}

void DrawnCurves::Follow(const absl::Status& drawn) {
  if (drawn.ok()) return;
  std::cerr << "no further TensorBoard curves: " << drawn.message() << '\n';
  curves_.reset();
}

}  // namespace tactus::worker
