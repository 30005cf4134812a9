#include "agent/engine/combine/adacomp_bins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kShortBinMax = 64;  // whose counts and entries take a byte
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned kPlus = 1;
constexpr unsigned kMinus = 2;

std::size_t BinsIn(std::size_t length, std::size_t bin) { return (length + bin - 1) / bin; }

// How wide a bin's numbers are.
struct Widths {
  explicit Widths(std::size_t bin)
      : bytes(bin <= kShortBinMax ? 1 : 2), place_bits(bin <= kShortBinMax ? 6 : 14) {}
  std::size_t bytes;
  unsigned place_bits;
};

void Append(std::size_t number, std::size_t bytes, std::vector<std::byte>& to) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(number >> (8 * i)));
}

std::size_t NumberAt(std::span<const std::byte> message, std::size_t at, std::size_t bytes) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number |= static_cast<std::size_t>(message[at + i]) << (8 * i);
  }
  return number;
}

// still_left <- G, and the largest magnitude of each bin, infinite where one is no number.
std::vector<float> Accumulate(const AdacompTensor& tensor) {
  std::vector<float> largest(BinsIn(tensor.values.size(), tensor.bin));
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const float sum = tensor.left[i] + tensor.values[i];
    tensor.still_left[i] = sum;
    float& of_bin = largest[i / tensor.bin];
    of_bin = std::isfinite(sum) ? std::max(of_bin, std::abs(sum)) : kInfinity;
  }
  return largest;
}

// 0: nothing is to be sent.
float ScaleOf(const std::vector<float>& largest, AdacompScale over) {
  double sum = 0;
  std::size_t bins = 0;
  for (const float each : largest) {
    sum += each;
    if (each > 0 || over == AdacompScale::kAllBins) ++bins;
  }
  return bins == 0 ? 0 : static_cast<float>(sum / static_cast<double>(bins));
}

}  // namespace

bool AdacompEncode(const AdacompTensor& tensor, std::vector<std::byte>& messages) {
  TACTUS_CHECK(tensor.bin >= 1 && tensor.bin <= kAdacompBinMax);
  const std::vector<float> largest = Accumulate(tensor);
  const float scale = ScaleOf(largest, tensor.scale);
  if (!std::isfinite(scale)) return false;
  if (scale == 0) return true;
  const Widths widths(tensor.bin);
  const std::size_t begin = messages.size();
  messages.resize(begin + sizeof(scale));
  std::memcpy(messages.data() + begin, &scale, sizeof(scale));
  const std::size_t counts = messages.size();
  messages.resize(counts + largest.size() * widths.bytes);
  for (std::size_t b = 0; b < largest.size(); ++b) {
    const std::size_t first = b * tensor.bin;
    const std::size_t end = std::min(first + tensor.bin, tensor.values.size());
    std::size_t count = 0;
    for (std::size_t i = first; i < end && largest[b] > 0; ++i) {
      float& left = tensor.still_left[i];
      if (left == 0 || !(std::abs(left + tensor.values[i]) >= largest[b])) continue;
      const unsigned code = left > 0 ? kPlus : kMinus;
      left -= left > 0 ? scale : -scale;
      Append(std::size_t{code} << widths.place_bits | (i - first), widths.bytes, messages);
      ++count;
    }
    for (std::size_t i = 0; i < widths.bytes; ++i) {
      messages[counts + b * widths.bytes + i] = static_cast<std::byte>(count >> (8 * i));
    }
  }
  return true;
}

bool AdacompAdd(std::span<const std::byte> message, std::size_t bin, std::span<float> sum) {
  if (message.empty()) return true;
  float scale = 0;
  const Widths widths(bin);
  const std::size_t bins = BinsIn(sum.size(), bin);
  std::size_t entry = sizeof(scale) + bins * widths.bytes;
  if (message.size() < entry) return false;
  std::memcpy(&scale, message.data(), sizeof(scale));
  for (std::size_t b = 0; b < bins; ++b) {
    std::size_t count = NumberAt(message, sizeof(scale) + b * widths.bytes, widths.bytes);
    if ((message.size() - entry) / widths.bytes < count) return false;
    const std::span<float> of_bin = sum.subspan(b * bin, std::min(bin, sum.size() - b * bin));
    for (; count > 0; --count, entry += widths.bytes) {
      const std::size_t coded = NumberAt(message, entry, widths.bytes);
      const std::size_t place = coded & ((std::size_t{1} << widths.place_bits) - 1);
      if (place >= of_bin.size()) return false;
      of_bin[place] += coded >> widths.place_bits == kPlus ? scale : -scale;
    }
  }
  return entry == message.size();
}

}  // namespace tactus::engine
