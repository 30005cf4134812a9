// When a round's passes were over, where the host only queued them: the device tells.

#include <memory>
#include <optional>

#include "agent/collective/transport.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::engine {
namespace {

using collective::Collective;
using collective::Completion;
using collective::Progress;

// A group of one in which whoever waits learns of the end at a given time.
class TimedTransport : public collective::Transport {
 public:
  class Handle : public Collective {
   public:
    explicit Handle(Instant at) : at_(at) {}
    Progress Poll() override { return Progress::kDone; }
    Completion Wait() override { return {.finished = at_, .at = at_}; }

   private:
    const Instant at_;
  };

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Collective> Start(const collective::Operation&) override {
    return std::make_unique<Handle>(at);
  }
  void Abort(const std::string&) override {}

  Instant at{};
};

// Of a round whose pass was queued from 1 s to 2 s, and of which the host heard at 10 s.
policies::Report ReportOf(std::unique_ptr<cuda::Device> device) {
  cuda::SegmentTable segments{{.name = "a", .length = 64, .shape = {64}}};
  cuda::AssignOffsets(segments);
  cuda::Buffer parameters = device->Allocate(64);
  cuda::Buffer gradients = device->Allocate(64 + LaneCount(1));
  cuda::Sums losses = device->AllocateSums(1);
  TimedTransport transport;
  Member member({.train_samples = 100, .stop = {.rounds = 1}}, *device, segments,
                parameters.span());
  RoundEngine engine(member, {.gradients = gradients.span(), .loss_sum = losses.span()}, transport,
                     {.batch_sizes = {8}});
  engine.Begin(Instant());
  EXPECT_TRUE(engine.NextBatch().has_value());
  transport.at = Instant(Seconds(10));
  engine.Step({.started = Instant(Seconds(1)), .finished = Instant(Seconds(2))});
  const std::optional<policies::Report> report = engine.TakeReport();
  EXPECT_TRUE(report.has_value());
  return report.value_or(policies::Report{});
}

// All that comes behind the pass takes the device less than a millisecond.
TEST(DeviceTimeTest, WhatTheDeviceTookForThePassIsComputing) {
  cuda_double::Reset({});

  const policies::Report report = ReportOf(cuda::OpenDevice("cuda:0").device);

  EXPECT_NEAR(report.compute_seconds, 9, 1e-3);
  EXPECT_NEAR(report.blocked_seconds, 0, 1e-3);
  EXPECT_GT(report.blocked_seconds, 0);
  EXPECT_DOUBLE_EQ(report.round_seconds, 10);
}

TEST(DeviceTimeTest, OnTheHostAPassIsOverWhenItsCallReturns) {
  const policies::Report report = ReportOf(cuda::OpenDevice("cpu:0").device);

  EXPECT_DOUBLE_EQ(report.compute_seconds, 1);
  EXPECT_DOUBLE_EQ(report.blocked_seconds, 8);
  EXPECT_DOUBLE_EQ(report.round_seconds, 10);
}

}  // namespace
}  // namespace tactus::engine
