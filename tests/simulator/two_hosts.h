// A small scenario for tests of whole simulations.

#pragma once

#include <memory>
#include <utility>

#include "simulator/noisy_quadratic.h"
#include "simulator/simulation.h"

namespace tactus::simulator {

// Two hosts "a" and "b" with a device "cpu:0" each, 32 samples in 32 ms and 64 ms; one job "twins"
// that trains on both for 500 rounds of fixed batches.
inline Scenario TwoHosts() {
  Scenario scenario;
  for (int i = 0; i < 2; ++i) {
    scenario.cluster.hosts.push_back(
        {.name = i == 0 ? "a" : "b",
         .devices = {{.name = "cpu:0", .sample_seconds = 1e-3 * (i + 1)}}});
  }
  SimulatedJob job{.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{})};
  job.settings.name = "twins";
  job.settings.workers_min = 2;
  job.settings.adapt.batch_policy = "fixed";
  job.engine.stop.rounds = 500;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

}  // namespace tactus::simulator
