// An invented simulation, for the tests of what is made of one.

#pragma once

#include <cmath>

#include "simulator/outcome.h"

namespace tactus::client {

inline std::vector<simulator::CurvePoint> SampleCurve() {
  return {{.round = 19,
           .seconds = 10,
           .samples = 64,
           .loss = 2,
           .loss_smoothed = 2,
           .smoothed_over_all = true,
           .plan_version = 1},
          {.round = 20,
           .seconds = 50,
           .samples = 128,
           .loss = 1,
           .loss_smoothed = 1.5,
           .smoothed_over_all = true},
          {.round = 21,
           .seconds = 60,
           .samples = 192,
           .loss = NAN,
           .loss_smoothed = NAN,
           .smoothed_over_all = true}};
}

// One job on two hosts: 100 s of training, two decisions, one pause, one violation.
inline simulator::Outcome SampleOutcome() {
  using simulator::TraceSpan;
  simulator::Outcome outcome;
  outcome.seconds = 110;
  outcome.events = 5000;
  outcome.messages = 400;
  outcome.faults = 1;
  simulator::JobOutcome& job = outcome.jobs.emplace_back();
  job.name = "demo-1";
  job.state = job::JobState::kSucceeded;
  job.reason = "time: 100 s are over";
  job.rounds = 1500;
  job.samples = 96000;
  job.epochs = 1;
  job.queued_seconds = 2.5;
  job.train_seconds = 100;
  job.samples_per_second = 960;
  job.utilisation = 0.96;
  job.train_loss = 0.5;
  job.bytes = 3 * 1024.0 * 1024;
  job.decisions_total = 2;
  job.decisions = {{.seconds = 4,
                    .adopted_round = 0,
                    .plan = {.version = 1, .batch_sizes = {32, 32}, .reason = "first plan"}},
                   {.seconds = 30,
                    .adopted_round = 40,
                    .plan = {.version = 2, .batch_sizes = {48, 16}, .reason = "b is \"slow\""}}};
  job.workers = {{.node = "a",
                  .device = "cpu:0",
                  .samples = 72000,
                  .compute_seconds = 90,
                  .wait_seconds = 5,
                  .transfer_seconds = 5},
                 {.node = "b", .device = "cpu:0", .samples = 24000, .compute_seconds = 100}};
  job.curve = SampleCurve();
  job.validation = {{.rounds = 0, .seconds = 0, .samples = 0, .loss = 2.5},
                    {.rounds = 20, .seconds = 50, .samples = 128, .loss = 1.25}};
  outcome.trace.workers = {"a/cpu:0 worker 1", "b/cpu:0 worker 2"};
  outcome.trace.spans = {
      {.kind = TraceSpan::Kind::kLoad, .worker = 0, .start_seconds = 1, .seconds = 2},
      {.kind = TraceSpan::Kind::kCompute,
       .worker = 0,
       .start_seconds = 3,
       .seconds = 0.25,
       .round = 1,
       .detail = 32},
      {.kind = TraceSpan::Kind::kWait,
       .worker = 0,
       .start_seconds = 3.25,
       .seconds = 1,
       .round = 1},
      {.kind = TraceSpan::Kind::kTransfer,
       .worker = 1,
       .start_seconds = 4.25,
       .seconds = 1e-9,
       .round = 1},
      {.kind = TraceSpan::Kind::kPause, .worker = 1, .start_seconds = 5, .seconds = 1},
      {.kind = TraceSpan::Kind::kPlan, .worker = 0, .start_seconds = 6, .round = 40, .detail = 2},
      {.kind = TraceSpan::Kind::kPlan, .worker = 1, .start_seconds = 6, .round = 40, .detail = 2}};
  outcome.violations = {{.seconds = 7, .what = "a plan differs"}};
  outcome.violations_total = 1;
  return outcome;
}

}  // namespace tactus::client
