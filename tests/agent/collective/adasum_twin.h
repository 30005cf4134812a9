// Adasum for tests: the reduction over whole groups in one thread, and its slow sequential twin.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/collective/adasum.h"
#include "agent/collective/transport.h"
#include "cuda/ops/segments.h"

namespace tactus::collective {

using Vectors = std::vector<std::vector<float>>;  // one a rank

// Segments of the given lengths, one after the other without padding.
cuda::SegmentTable SegmentsOf(const std::vector<std::size_t>& lengths);

// What the members of a group bring along.
struct AdasumCase {
  Vectors vectors{};  // [ranks, length]
  cuda::SegmentTable segments{};
  std::vector<std::uint32_t> nodes{};  // as for AdasumReduction
  Vectors lanes{};                     // [ranks, any]; empty: none
};

// What each member gets.
struct AdasumOutcome {
  Progress progress = Progress::kDone;
  std::vector<float> vector{};
  std::vector<float> lanes{};
  double norm2_sum = 0;
  bool nonfinite = false;
};

// A group whose members are all driven from the test's thread.
class AdasumGroup {
 public:
  // Without transports: a group of the in-process kind.
  explicit AdasumGroup(AdasumCase test, std::vector<std::unique_ptr<Transport>> transports = {});

  Transport& transport(std::size_t rank) { return *transports_[rank]; }
  AdasumReduction& reduction(std::size_t rank) { return *reductions_[rank]; }

  void Start();

  // Asks every member once; says whether one of them is still running.
  bool PollAll();

  // Brings the reduction to its end.
  std::vector<AdasumOutcome> Finish();

 private:
  AdasumCase test_;
  const std::unique_ptr<cuda::Device> device_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<AdasumReduction>> reductions_;
};

// What each member of a group of the in-process kind gets.
std::vector<AdasumOutcome> ReduceByAdasum(const AdasumCase& test);

// The same of rank 0 after all members were found to have the same bits.
std::vector<float> AgreedAdasum(const AdasumCase& test);

// The operator, spelled out, each segment by itself.
std::vector<float> TwinPair(const std::vector<float>& a, const std::vector<float>& b,
                            const cuda::SegmentTable& segments);

// The tree, one pair after the other; `nodes` of equal size are averaged first.
std::vector<float> TwinAdasum(const AdasumCase& test);

// How far the reduction may be from the twin in a segment: each of at most six levels rounds once
// and takes over an error of its operands at most doubled, all relative to vectors that are no
// longer than the members' together.
double ToleranceIn(const cuda::Segment& segment, const Vectors& vectors);

double Norm2In(const cuda::Segment& segment, const std::vector<float>& vector);
double DotIn(const cuda::Segment& segment, const std::vector<float>& a,
             const std::vector<float>& b);

}  // namespace tactus::collective
