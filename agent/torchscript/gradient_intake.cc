#include "agent/torchscript/gradient_intake.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::torchscript {

GradientIntake::GradientIntake(cuda::Device& device, const cuda::SegmentTable& segments,
                               PassSums& sums, std::size_t bucket_bytes)
    : device_(device),
      segments_(segments),
      sums_(sums),
      plan_(collective::MakeBuckets(segments, cuda::FlatLength(segments), bucket_bytes)),
      waiting_max_(2 * bucket_bytes / sizeof(float)),
      states_(segments.size(), State::kOver),
      gradients_(segments.size()),
      missing_(plan_.buckets.size()) {}

void GradientIntake::Begin(const Pass& pass) {
  pass_ = pass;
  std::ranges::fill(states_, State::kMissing);
  waiting_ = 0;
  std::ranges::transform(plan_.buckets, missing_.begin(), &collective::Bucket::segments);
}

void GradientIntake::Take(model::SegmentGradient gradient) {
  const std::size_t segment = gradient.segment;
  TACTUS_CHECK(states_[segment] == State::kMissing);
  states_[segment] = State::kWaiting;
  gradients_[segment] = std::move(gradient);
  waiting_ += segments_[segment].length;
  const std::size_t bucket = plan_.bucket_of[segment];
  if (--missing_[bucket] > 0 || (pass_.leaves && waiting_ <= waiting_max_)) return;
  Gather(sums_.gradients.span().subspan(plan_.buckets[bucket].offset, plan_.buckets[bucket].length),
         {});
}

bool GradientIntake::Bring(std::span<float> stretch, std::span<double> norm2) {
  const std::span<float> all = sums_.gradients.span();
  if (stretch.data() < all.data() || stretch.data() >= all.data() + all.size()) return false;
  const auto offset = static_cast<std::size_t>(stretch.data() - all.data());
  const std::size_t first = FirstFrom(offset);
  const std::size_t last = FirstFrom(offset + stretch.size());
  const auto waiting =
      std::count(states_.begin() + static_cast<std::ptrdiff_t>(first),
                 states_.begin() + static_cast<std::ptrdiff_t>(last), State::kWaiting);
  if (waiting == 0) return false;
  if (static_cast<std::size_t>(waiting) < last - first) {
    GatherRest(first, last);
    return false;
  }
  Gather(stretch, norm2);
  return true;
}

void GradientIntake::End() { GatherRest(0, states_.size()); }

// In stretches, as what is over need not be the buckets that are asked for.
void GradientIntake::GatherRest(std::size_t first, std::size_t last) {
  const auto over = [](State state) { return state == State::kOver; };
  const auto end = states_.begin() + static_cast<std::ptrdiff_t>(last);
  for (auto begin = states_.begin() + static_cast<std::ptrdiff_t>(first); begin != end;) {
    begin = std::find_if_not(begin, end, over);
    const auto behind = std::find_if(begin, end, over);
    if (begin == behind) return;
    const auto offset_of = [&](auto state) {
      return state == states_.end()
                 ? cuda::FlatLength(segments_)
                 : segments_[static_cast<std::size_t>(state - states_.begin())].offset;
    };
    Gather(sums_.gradients.span().subspan(offset_of(begin), offset_of(behind) - offset_of(begin)),
           {});
    begin = behind;
  }
}

void GradientIntake::Drop() {
  std::ranges::fill(states_, State::kOver);
  for (model::SegmentGradient& gradient : gradients_) gradient = {};
}

// The memory goes back when the launch is queued: whoever gets it next is queued behind.
void GradientIntake::Gather(std::span<float> stretch, std::span<double> norm2) {
  const auto offset = static_cast<std::size_t>(stretch.data() - sums_.gradients.span().data());
  const std::size_t first = FirstFrom(offset);
  const std::size_t last = FirstFrom(offset + stretch.size());
  parts_.clear();
  for (std::size_t i = first; i < last; ++i) {
    if (gradients_[i].values == nullptr) continue;
    parts_.push_back({.offset = segments_[i].offset - offset,
                      .length = segments_[i].length,
                      .from = gradients_[i].values});
  }
  device_.Gather({.parts = parts_, .adds = pass_.adds}, stretch, norm2);
  for (std::size_t i = first; i < last; ++i) {
    if (states_[i] == State::kWaiting) waiting_ -= segments_[i].length;
    states_[i] = State::kOver;
    gradients_[i] = {};
  }
}

std::size_t GradientIntake::FirstFrom(std::size_t offset) const {
  return static_cast<std::size_t>(
      std::ranges::lower_bound(segments_, offset, {}, &cuda::Segment::offset) - segments_.begin());
}

}  // namespace tactus::torchscript
