// AdaComp's code of one tensor: what stands out of its bins, each as a sign of one shared scale.
//
//   G = e + x               x: what is new, e: what earlier codes left out
//   H = G + x               the newest weighs twice
//   m_b = max |G| over a bin b of `bin` elements
//   selected                |H| >= m_b, where m_b > 0 and G is not 0
//   sent                    sign(G) scale, scale: the mean of the m_b > 0
//   e' = G - sent           of those selected; G of all others
//
// A message: scale (float32), how many each bin has (1 byte, or 2 where bins are longer than 64),
// then for each of these its sign and its place in the bin, code << 6 | place in 1 byte or
// code << 14 | place in 2; code 1 is +, 2 is -. Numbers are little-endian. Where all is zero the
// message is empty.
//
// Source: [adacomp] from memory, unverified, as section 3 of the specification has it. Differs: the
// scale leaves out bins of zeros, of which an embedding has nearly nothing else; messages, of the
// paper's widths: design.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tactus::engine {

inline constexpr std::size_t kAdacompBinMax = 16384;

// Which bins the scale is the mean of.
enum class AdacompScale { kBinsWithValues, kAllBins };

// A tensor to be coded: equal lengths, none overlaps.
struct AdacompTensor {
  std::span<const float> values{};  // x
  std::span<const float> left{};    // e
  std::span<float> still_left{};    // e'
  std::size_t bin = 50;             // 1 to kAdacompBinMax
  AdacompScale scale = AdacompScale::kBinsWithValues;
};

// Appends the tensor's message to `messages` and writes still_left. False: some of G is not finite,
// nothing is appended, and still_left is of no use.
bool AdacompEncode(const AdacompTensor& tensor, std::vector<std::byte>& messages);

// sum <- sum + what the message says of a tensor of as many elements, coded with the same bin.
// False: it is no such message.
bool AdacompAdd(std::span<const std::byte> message, std::size_t bin, std::span<float> sum);

}  // namespace tactus::engine
