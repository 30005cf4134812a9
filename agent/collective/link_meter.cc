#include "agent/collective/link_meter.h"

#include <algorithm>

namespace tactus::collective {

void LinkMeter::Add(std::size_t peer, std::size_t bytes, Duration time, std::size_t senders) {
  const threads::MutexLock lock(mutex_);
  peers_[peer].bytes += static_cast<double>(bytes * senders);
  peers_[peer].seconds += ToSeconds(time);
}

double LinkMeter::Take() {
  const threads::MutexLock lock(mutex_);
  std::vector<double> rates;
  for (Came& came : peers_) {
    if (came.seconds > 0) rates.push_back(came.bytes / came.seconds);
    came = {};
  }
  const std::size_t others = peers_.size() - 1;
  if (rates.empty() || 2 * rates.size() <= others) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

}  // namespace tactus::collective
