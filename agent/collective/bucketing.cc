#include "agent/collective/bucketing.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::collective {
namespace {

// The first segment of the last bucket; as many as there are where it is not chosen.
std::size_t FirstOfLast(const cuda::SegmentTable& segments, std::size_t bucket_bytes) {
  if (bucket_bytes <= kEdgeBucketBytes || segments.empty()) return segments.size();
  const std::size_t end = segments.back().offset + segments.back().length;
  std::size_t first = segments.size() - 1;
  while (first > 0 && (end - segments[first - 1].offset) * sizeof(float) <= kEdgeBucketBytes) {
    --first;
  }
  return first;
}

}  // namespace

BucketPlan MakeBuckets(const cuda::SegmentTable& segments, std::size_t total_length,
                       std::size_t bucket_bytes) {
  TACTUS_CHECK(total_length >= 1 && bucket_bytes >= 1);
  const std::size_t first_of_last = FirstOfLast(segments, bucket_bytes);
  BucketPlan plan;
  plan.bucket_of.reserve(segments.size());
  Bucket bucket;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t end = segments[i].offset + segments[i].length;
    TACTUS_CHECK(end <= total_length);
    ++bucket.segments;
    plan.bucket_of.push_back(plan.buckets.size());
    const bool last = i + 1 == segments.size() || i >= first_of_last;
    const std::size_t limit =
        plan.buckets.empty() ? std::min(bucket_bytes, kEdgeBucketBytes) : bucket_bytes;
    const bool full = (end - bucket.offset) * sizeof(float) >= limit;
    if (last || (!full && i + 1 != first_of_last)) continue;
    // Padding goes with the segment before it; what lies behind the last segment, with the last
    // bucket.
    const std::size_t next_offset = segments[i + 1].offset;
    TACTUS_CHECK(next_offset >= end);
    bucket.length = next_offset - bucket.offset;
    plan.buckets.push_back(bucket);
    bucket = {.offset = next_offset};
  }
  bucket.length = total_length - bucket.offset;
  plan.buckets.push_back(bucket);
  return plan;
}

std::size_t EarlySegments(const BucketPlan& plan) {
  const std::size_t last = plan.buckets.size() - 1;
  return static_cast<std::size_t>(std::ranges::lower_bound(plan.bucket_of, last) -
                                  plan.bucket_of.begin());
}

namespace {

std::size_t LengthOf(const BucketPlan& plan) {
  TACTUS_CHECK(!plan.buckets.empty());
  return plan.buckets.back().offset + plan.buckets.back().length;
}

}  // namespace

BucketedReduction::BucketedReduction(BucketPlan plan, StartSum start_sum)
    : plan_(std::move(plan)),
      start_sum_(std::move(start_sum)),
      length_(LengthOf(plan_)),
      ready_(plan_.bucket_of.size()),
      missing_(plan_.buckets.size()) {
  running_.reserve(plan_.buckets.size());
}

void BucketedReduction::Begin(std::span<float> buffer) {
  TACTUS_CHECK(!open_);
  TACTUS_CHECK(buffer.size() == length_);
  open_ = true;
  buffer_ = buffer;
  next_ = 0;
  std::fill(ready_.begin(), ready_.end(), false);
  std::transform(plan_.buckets.begin(), plan_.buckets.end(), missing_.begin(),
                 [](const Bucket& bucket) { return bucket.segments; });
}

void BucketedReduction::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(open_ && segment < ready_.size());
  TACTUS_CHECK(!ready_[segment]);
  TACTUS_CHECK(next_ < plan_.buckets.size());  // Finish was not called
  ready_[segment] = true;
  --missing_[plan_.bucket_of[segment]];
  // In order, whichever is full first: members' sums are matched by the order in which they start.
  while (next_ < plan_.buckets.size() && missing_[next_] == 0) Start(next_++);
}

void BucketedReduction::Finish() {
  TACTUS_CHECK(open_);
  while (next_ < plan_.buckets.size()) Start(next_++);
}

void BucketedReduction::Start(std::size_t bucket) {
  running_.push_back(
      start_sum_(buffer_.subspan(plan_.buckets[bucket].offset, plan_.buckets[bucket].length)));
}

Progress BucketedReduction::Poll() {
  TACTUS_CHECK(open_);
  Progress worst = Progress::kDone;
  for (const std::unique_ptr<Collective>& collective : running_) {
    const Progress progress = collective->Poll();
    if (progress == Progress::kRunning) return progress;
    if (progress == Progress::kFailed) worst = progress;
  }
  return worst;
}

Progress BucketedReduction::WaitOnDevice() {
  TACTUS_CHECK(open_ && next_ == plan_.buckets.size());
  Progress worst = Progress::kDone;
  for (const std::unique_ptr<Collective>& collective : running_) {
    const Progress progress = collective->WaitOnDevice();
    if (progress == Progress::kFailed) return progress;
    if (progress == Progress::kRunning) worst = progress;
  }
  return worst;
}

Completion BucketedReduction::Wait() {
  TACTUS_CHECK(open_ && next_ == plan_.buckets.size());
  Completion outcome;
  for (const std::unique_ptr<Collective>& collective : running_) {
    // All of them, also behind one that failed: none may use the buffer once this returns.
    Completion completion = collective->Wait();
    outcome.at = completion.at;
    outcome.finished = std::max(outcome.finished, completion.finished);
    if (outcome.progress == Progress::kFailed) continue;
    outcome.progress = completion.progress;
    outcome.reason = std::move(completion.reason);
  }
  running_.clear();
  open_ = false;
  return outcome;
}

}  // namespace tactus::collective
