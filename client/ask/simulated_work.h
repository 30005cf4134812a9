// What stands for a job's model and data in a simulation: costs, and how the loss falls.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/spec/field_checks.h"
#include "simulator/examples.h"
#include "simulator/noisy_quadratic.h"
#include "simulator/perceptron.h"
#include "simulator/power_law.h"
#include "tactus/sim/v1/cluster.pb.h"

namespace tactus::client {

struct SyntheticData {
  simulator::SyntheticOptions training{};
  std::size_t validation_samples = 1000;  // of the same clusters; 0: none
};

// Trains for real.
struct PerceptronLoss {
  simulator::PerceptronOptions model{};
  std::optional<SyntheticData> synthetic{};  // nothing: what the job file names
};

// Replays the loss of another run.
struct CurveLoss {
  std::string file{};                          // as client/ask/curve_file.h has them
  std::vector<simulator::LossPoint> points{};  // not empty: these, and no file
  bool noise = false;  // beyond the recording, as simulator::RecordedCurveOptions
};

using LossModel = std::variant<simulator::NoisyQuadraticOptions, PerceptronLoss, CurveLoss>;

struct SimulatedWork {
  std::uint64_t parameters = 0;  // that a reduction carries; 0: those of the loss model
  double backward_share = 0.6;   // of a micro-batch's time, [0, 1]
  double load_seconds = 1;       // of a worker's start
  double conclude_seconds = 0.5;
  // In an epoch; not of a perceptron, whose data say so.
  std::uint64_t train_samples = 50000;
  // Seeds of noise and numbers of samples are set when a learner is made, not here.
  LossModel loss{};
};

// The keys `model` and `loss` of a cluster file in which nothing is left open; `folder` is where
// its paths begin.
SimulatedWork ReadWork(const sim::v1::Cluster& cluster, const std::string& folder,
                       spec::FieldChecks& checks);

// Sets the same two keys.
void WriteWork(const SimulatedWork& work, sim::v1::Cluster* cluster);

}  // namespace tactus::client
