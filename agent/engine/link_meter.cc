#include "agent/engine/link_meter.h"

namespace tactus::engine {

std::vector<double> LinkMeter::Take(std::span<const collective::Carried> carried,
                                    std::size_t rank) {
  if (before_.size() != carried.size()) before_.assign(carried.begin(), carried.end());
  std::vector<double> rates(carried.size());
  for (std::size_t peer = 0; peer < carried.size(); ++peer) {
    if (peer == rank) continue;
    const std::uint64_t bytes = carried[peer].bytes - before_[peer].bytes;
    const double seconds = carried[peer].seconds - before_[peer].seconds;
    if (bytes < kBytesMin || !(seconds > 0)) return {};
    rates[peer] = static_cast<double>(bytes) / seconds;
  }
  before_.assign(carried.begin(), carried.end());
  return rates;
}

}  // namespace tactus::engine
