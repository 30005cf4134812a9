// The learners of a simulation's jobs, from what the cluster file says of model and data.

#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "absl/status/statusor.h"
#include "client/ask/simulated_work.h"
#include "simulator/examples.h"
#include "simulator/learner.h"
#include "simulator/noisy_quadratic.h"
#include "simulator/perceptron.h"
#include "simulator/recorded_curve.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {

// Opens what learners need once, and makes one a simulation.
class LearnerSource {
 public:
  // Errors: those of agent/data's OpenData and of ReadCurveFile, which name the field or file;
  // InvalidArgument, "data...", data that a perceptron cannot learn.
  static absl::StatusOr<LearnerSource> Open(const SimulatedWork& work, const v1::JobSpec& spec);

  // A learner whose noise, if it has any, follows `seed`.
  std::unique_ptr<simulator::Learner> Make(std::uint64_t seed) const;

 private:
  // What every perceptron of a source learns. Shared, because each of them keeps it.
  struct Lesson {
    simulator::PerceptronOptions options{};
    std::shared_ptr<const simulator::Examples> training{};
    std::shared_ptr<const simulator::Examples> validation{};  // null: none
  };
  using Content =
      std::variant<simulator::NoisyQuadraticOptions, Lesson, simulator::RecordedCurveOptions>;

  explicit LearnerSource(Content content) : content_(std::move(content)) {}
  static absl::StatusOr<Lesson> OpenLesson(const sim::v1::Perceptron& model,
                                           const v1::JobSpec& spec);

  Content content_;
};

}  // namespace tactus::client
