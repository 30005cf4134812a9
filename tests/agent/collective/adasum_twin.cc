#include "tests/agent/collective/adasum_twin.h"

#include <bit>
#include <cmath>
#include <utility>

#include "agent/collective/in_process.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

std::vector<float> Mean(const Vectors& vectors) {
  std::vector<float> mean = vectors.front();
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& vector : vectors) sum += static_cast<double>(vector[i]);
    mean[i] = static_cast<float>(sum / static_cast<double>(vectors.size()));
  }
  return mean;
}

}  // namespace

cuda::SegmentTable SegmentsOf(const std::vector<std::size_t>& lengths) {
  cuda::SegmentTable segments;
  std::size_t offset = 0;
  for (const std::size_t length : lengths) {
    segments.push_back(
        {.name = "s" + std::to_string(segments.size()), .offset = offset, .length = length});
    offset += length;
  }
  return segments;
}

AdasumGroup::AdasumGroup(AdasumCase test, std::vector<std::unique_ptr<Transport>> transports)
    : test_(std::move(test)),
      device_(cuda::MakeHostDevice("cpu:0")),
      transports_(std::move(transports)) {
  const std::size_t size = test_.vectors.size();
  test_.lanes.resize(size);
  if (transports_.empty()) {
    transports_ = MakeInProcessGroup(static_cast<int>(size), [] { return kTestNow; });
  }
  for (const std::unique_ptr<Transport>& transport : transports_) {
    reductions_.push_back(
        std::make_unique<AdasumReduction>(*transport, *device_, test_.segments, test_.nodes));
  }
}

void AdasumGroup::Start() {
  for (std::size_t rank = 0; rank < reductions_.size(); ++rank) {
    reductions_[rank]->Start(test_.vectors[rank], test_.lanes[rank]);
  }
}

bool AdasumGroup::PollAll() {
  bool running = false;
  for (const std::unique_ptr<AdasumReduction>& reduction : reductions_) {
    running |= reduction->Poll() == Progress::kRunning;
  }
  return running;
}

std::vector<AdasumOutcome> AdasumGroup::Finish() {
  while (PollAll()) {
  }
  std::vector<AdasumOutcome> outcomes;
  for (std::size_t rank = 0; rank < reductions_.size(); ++rank) {
    AdasumReduction& own = *reductions_[rank];
    outcomes.push_back({.progress = own.Wait().progress,
                        .vector = test_.vectors[rank],
                        .lanes = test_.lanes[rank],
                        .norm2_sum = own.norm2_sum(),
                        .nonfinite = own.nonfinite()});
  }
  return outcomes;
}

std::vector<AdasumOutcome> ReduceByAdasum(const AdasumCase& test) {
  AdasumGroup group(test);
  group.Start();
  return group.Finish();
}

std::vector<float> AgreedAdasum(const AdasumCase& test) {
  const std::vector<AdasumOutcome> outcomes = ReduceByAdasum(test);
  const AdasumOutcome& first = outcomes.front();
  for (const AdasumOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.progress, Progress::kDone);
    EXPECT_TRUE(SameBits(outcome.vector, first.vector));
    EXPECT_TRUE(SameBits(outcome.lanes, first.lanes));
    EXPECT_EQ(outcome.norm2_sum, first.norm2_sum);
    EXPECT_FALSE(outcome.nonfinite);
  }
  return first.vector;
}

double DotIn(const cuda::Segment& segment, const std::vector<float>& a,
             const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

double Norm2In(const cuda::Segment& segment, const std::vector<float>& vector) {
  return DotIn(segment, vector, vector);
}

std::vector<float> TwinPair(const std::vector<float>& a, const std::vector<float>& b,
                            const cuda::SegmentTable& segments) {
  std::vector<float> result(a.size());
  for (const cuda::Segment& segment : segments) {
    const double dot = DotIn(segment, a, b);
    const double a_norm2 = Norm2In(segment, a);
    const double b_norm2 = Norm2In(segment, b);
    const double alpha = a_norm2 == 0 ? 1 : 1 - dot / a_norm2 / 2;
    const double beta = b_norm2 == 0 ? 1 : 1 - dot / b_norm2 / 2;
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      const double sum = alpha * static_cast<double>(a[i]) + beta * static_cast<double>(b[i]);
      result[i] = static_cast<float>(sum);
    }
  }
  return result;
}

std::vector<float> TwinAdasum(const AdasumCase& test) {
  Vectors tree = test.vectors;
  if (!test.nodes.empty()) {
    tree.clear();
    const std::uint32_t last = test.nodes.back();  // nodes count up from 0
    for (std::uint32_t node = 0; node <= last; ++node) {
      Vectors members;
      for (std::size_t rank = 0; rank < test.nodes.size(); ++rank) {
        if (test.nodes[rank] == node) members.push_back(test.vectors[rank]);
      }
      tree.push_back(Mean(members));
    }
  }
  const std::size_t core = std::bit_floor(tree.size());
  for (std::size_t extra = core; extra < tree.size(); ++extra) {
    tree[extra - core] = TwinPair(tree[extra - core], tree[extra], test.segments);
  }
  tree.resize(core);
  while (tree.size() > 1) {
    Vectors above;
    for (std::size_t i = 0; i < tree.size(); i += 2) {
      above.push_back(TwinPair(tree[i], tree[i + 1], test.segments));
    }
    tree = std::move(above);
  }
  return tree.front();
}

double ToleranceIn(const cuda::Segment& segment, const Vectors& vectors) {
  constexpr double kRounding = 0x1p-24;
  double norms = 0;
  for (const std::vector<float>& vector : vectors) norms += std::sqrt(Norm2In(segment, vector));
  return 64 * kRounding * norms;
}

}  // namespace tactus::collective
