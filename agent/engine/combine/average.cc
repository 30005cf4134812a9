// The mean over samples.

#include <algorithm>
#include <utility>

#include "agent/engine/combine/aggregator.h"
#include "policies/orthogonality.h"

namespace tactus::engine {
namespace {

using collective::Bucket;
using collective::Completion;
using collective::Progress;

class Average : public Aggregator {
 public:
  Average(collective::Transport& transport, collective::BucketPlan plan, std::size_t length,
          BeforeLeave before_leave)
      : transport_(transport),
        length_(length),
        before_leave_(std::move(before_leave)),
        reduction_(std::move(plan), [this](std::span<float> stretch) { return Start(stretch); }) {}

  double Divisor(double samples) const override { return samples; }
  double weight() const override { return 1; }

  policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread& spread,
                                double norm2) const override {
    return {.samples = lanes.samples,
            .contributors = spread.contributors,
            .samples_gradient_norm2 = lanes.samples_gradient_norm2,
            .gradient_norm2 = norm2};
  }
  double Orthogonality(const Lanes& lanes, const Spread& spread, double norm2) const override {
    return policies::Orthogonality(FactsOf(lanes, spread, norm2), spread.samples_squared);
  }

  void SetEncoding(Encoding& encoding) override { encoding_ = &encoding; }
  void Begin(std::span<float> buffer) override {
    buffer_ = buffer;
    restored_ = false;
    reduction_.Begin(buffer);
  }
  bool by_segments() const override { return true; }
  std::size_t early_segments() const override {
    return collective::EarlySegments(reduction_.plan());
  }
  void SegmentReady(std::size_t segment) override { reduction_.SegmentReady(segment); }
  void Finish() override { reduction_.Finish(); }
  Progress Poll() override { return reduction_.Poll(); }

  Progress WaitOnDevice() override {
    const Progress progress = reduction_.WaitOnDevice();
    if (progress != Progress::kFailed) Restore();
    return progress;
  }

  Completion Wait() override {
    Completion completion = reduction_.Wait();
    if (completion.progress == Progress::kDone) Restore();
    return completion;
  }

  std::uint64_t bytes() const override {
    std::uint64_t bytes = 0;
    for (const Bucket& bucket : reduction_.plan().buckets) {
      bytes += encoding_->Bytes(PieceAt(bucket.offset, bucket.length));
    }
    return bytes;
  }

 private:
  void Restore() {
    if (std::exchange(restored_, true)) return;
    for (const Bucket& bucket : reduction_.plan().buckets) {
      encoding_->Restore(PieceAt(bucket.offset, bucket.length));
    }
  }

  std::unique_ptr<collective::Collective> Start(std::span<float> stretch) {
    before_leave_(stretch);
    const auto offset = static_cast<std::size_t>(stretch.data() - buffer_.data());
    const Piece piece = PieceAt(offset, stretch.size());
    encoding_->Prepare(piece);
    return encoding_->Exchange(transport_, piece);
  }

  // Of a stretch of the buffer, which the vector's end may divide.
  Piece PieceAt(std::size_t offset, std::size_t length) const {
    const std::size_t begin = std::min(offset, length_);
    const std::size_t end = std::max(begin, std::min(offset + length, length_));
    return {.offset = begin,
            .values = buffer_.subspan(begin, end - begin),
            .lanes = buffer_.subspan(end, offset + length - end)};
  }

  collective::Transport& transport_;
  DenseEncoding dense_;
  Encoding* encoding_ = &dense_;
  const std::size_t length_;
  const BeforeLeave before_leave_;
  std::span<float> buffer_;  // the open one, or the last
  bool restored_ = false;    // what came was
  collective::BucketedReduction reduction_;
};

}  // namespace

std::unique_ptr<Aggregator> MakeAverage(collective::Transport& transport,
                                        collective::BucketPlan plan, std::size_t length,
                                        Aggregator::BeforeLeave before_leave) {
  return std::make_unique<Average>(transport, std::move(plan), length, std::move(before_leave));
}

}  // namespace tactus::engine
