// Buckets: the flat gradient buffer is reduced in stretches, each as soon as backward completed it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/ops/segments.h"

namespace tactus::collective {

// A stretch of the flat buffer that is reduced by one collective.
struct Bucket {
  std::size_t offset = 0;    // [elements]
  std::size_t length = 0;    // [elements] >= 1
  std::size_t segments = 0;  // segments that must be ready before it may start
};

// Which stretches a buffer is reduced in: disjoint, without gaps, from the front to the end; at
// least one.
struct BucketPlan {
  std::vector<Bucket> buckets;
  std::vector<std::size_t> bucket_of;  // one a segment: index of the bucket that holds it
};

inline constexpr std::size_t kEdgeBucketBytes = std::size_t{1} << 20;

// Cuts a flat buffer into buckets from the front, which backward completes first.
//
// A bucket is closed by the segment with which it reaches bucket_bytes, and ends where the next
// segment begins, so padding is reduced as well (it is zero). The last bucket also holds the tail
// behind the last segment. Segments are never split: their elements become ready together.
//
// Where bucket_bytes is more than kEdgeBucketBytes, the first bucket is closed when it reaches
// those, so that the links have work early; and the last holds no more segments than fit into them,
// but at least one: it starts when the backward pass is all but over, so that nothing hides it.
//
// Source: design.
//
// total_length [elements] >= 1, at least the end of the last segment; bucket_bytes [bytes] >= 1.
// Returns at least one bucket; the same arguments give the same plan on all members.
BucketPlan MakeBuckets(const cuda::SegmentTable& segments, std::size_t total_length,
                       std::size_t bucket_bytes);

// How many segments, from the front, are in buckets before the last: those that may leave before
// all else is final.
std::size_t EarlySegments(const BucketPlan& plan);

// All-reduces one buffer round after round, bucket by bucket, overlapped with a backward pass.
//
// A round: Begin, SegmentReady for any segments in any order (none at all is fine), Finish,
// Wait. Buckets start strictly in the plan's order, whatever the order of readiness, so that all
// members start the same collectives; what lies behind the last segment is final when the last
// bucket starts. Nothing but the collectives' handles is allocated per round. One thread at a time.
//
// Destroying it while a round is under way waits for the collectives already started.
class BucketedReduction {
 public:
  // Starts the collective that makes a stretch of the buffer, this member's own values, the sum
  // over all members.
  using StartSum = std::function<std::unique_ptr<Collective>(std::span<float> stretch)>;

  BucketedReduction(BucketPlan plan, StartSum start_sum);

  // Opens a round on `buffer`, as long as the plan. The memory must live until Wait has returned.
  // Requires: no round is open.
  void Begin(std::span<float> buffer);

  // The segment's elements are final on this member. Requires: an open round, before Finish,
  // and the first call for this segment in it.
  void SegmentReady(std::size_t segment);

  // Everything is final: starts what has not been started.
  void Finish();

  // Where the round stands, without waiting: kRunning while any bucket that was started is.
  Progress Poll();

  // Collective::WaitOnDevice of all buckets: kFailed where one has failed. Requires: Finish was
  // called.
  Progress WaitOnDevice();

  // Waits for all buckets and closes the round. Returns the first failure in the buckets' order, if
  // any, at the time of the last bucket. Requires: Finish was called.
  Completion Wait();

  const BucketPlan& plan() const { return plan_; }

 private:
  void Start(std::size_t bucket);

  // Constant after construction.
  const BucketPlan plan_;
  const StartSum start_sum_;
  const std::size_t length_;  // [elements] of the buffer

  // The open round.
  bool open_ = false;
  std::span<float> buffer_;
  std::vector<bool> ready_;                           // one a segment
  std::vector<std::size_t> missing_;                  // one a bucket: segments that are not ready
  std::size_t next_ = 0;                              // the first bucket that was not started
  std::vector<std::unique_ptr<Collective>> running_;  // in order of start
};

}  // namespace tactus::collective
