#include "agent/data/split.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace tactus::data {
namespace {

// Samples of another data set.
class Slice final : public Dataset {
 public:
  // `whole` is shared with the other slice of the same split.
  Slice(std::shared_ptr<const Dataset> whole, Range range)
      : whole_(std::move(whole)), range_(range) {}

  std::uint64_t size() const override { return range_.size; }
  const std::vector<TensorSpec>& inputs() const override { return whole_->inputs(); }
  const TensorSpec& targets() const override { return whole_->targets(); }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    std::vector<std::uint64_t> shifted(indices.begin(), indices.end());
    for (std::uint64_t& index : shifted) {
      TACTUS_CHECK(index < range_.size);
      index += range_.first;
    }
    whole_->Read(shifted, inputs, targets);
  }

 private:
  const std::shared_ptr<const Dataset> whole_;
  const Range range_;
};

}  // namespace

std::uint64_t ValidationCount(std::uint64_t total, double fraction) {
  // A share that is a whole number stays one: 0.29 * 100 is 28.999999999999996.
  constexpr double kRounding = 1.0 + 1e-12;
  return static_cast<std::uint64_t>(static_cast<double>(total) * fraction * kRounding);
}

Split SplitSamples(std::shared_ptr<const Dataset> dataset, double fraction) {
  const std::uint64_t size = dataset->size();
  const std::uint64_t validation = ValidationCount(size, fraction);
  if (validation == 0) return {.train = std::move(dataset), .validation = nullptr};
  const std::uint64_t train = size - validation;
  return {
      .train = std::make_shared<Slice>(dataset, Range{.first = 0, .size = train}),
      .validation = std::make_shared<Slice>(dataset, Range{.first = train, .size = validation})};
}

}  // namespace tactus::data
