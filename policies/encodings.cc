#include "policies/encodings.h"

#include <algorithm>
#include <cmath>

namespace tactus::policies {
namespace {

constexpr double kFloatBits = 32;

double Dense(const EncodingOptions&, std::uint32_t) { return 1; }
double SixteenBits(const EncodingOptions&, std::uint32_t) { return 0.5; }

// b bits on the way to a slice's owner, and from there as many as sums of P codes take, or b where
// that is more than 8: an all-reduce sends half of its bytes each way. The magnitudes of units of
// 4096 values go to all P members.
//
//   share = (b + b_sum) / 64 + P / 8192,   b_sum = 1 + ceil(log2(1 + P (2^(b-1) - 1)))
double Dq(const EncodingOptions& options, std::uint32_t members) {
  constexpr double kSumBitsMax = 8;
  constexpr double kUnit = 4096;
  const double levels = std::exp2(options.bits - 1) - 1;
  const double exact = 1 + std::ceil(std::log2(1 + members * levels));
  const double sum = exact <= kSumBitsMax ? exact : options.bits;
  return (options.bits + sum) / (2 * kFloatBits) + members / (2 * kUnit);
}

// Bytes of a bin of n values over those of its float32. Of normal values as many are sent as are
// above half of the largest, for which sqrt(2 ln n) stands: n erfc(sqrt(ln n) / 2). That is a first
// round's; later ones send fewer.
double ShareOfBin(std::uint32_t bin) {
  constexpr std::uint32_t kShort = 64;
  const double entry = bin <= kShort ? 1 : 2;  // [bytes], as the count of a bin
  const double entries = bin * std::erfc(std::sqrt(std::log(bin)) / 2);
  return entry * (1 + entries) / (sizeof(float) * bin);
}

// Messages go whole to all others, which P - 1 members' cost as much as an all-reduce of P / 2
// times as many bytes. Which tensors are of convolutions is not known: the longer messages.
double Adacomp(const EncodingOptions& options, std::uint32_t members) {
  return members / 2.0 * std::max(ShareOfBin(options.bin), ShareOfBin(options.convolution_bin));
}

// The sketch, and the exact sums of the candidates.
double Sketch(const EncodingOptions& options, std::uint32_t) {
  const double candidates = options.share * options.candidates;
  const double columns =
      options.columns > 0 ? static_cast<double>(options.columns) / kSketchStretch : candidates;
  return candidates + options.rows * columns;
}

// Once it has warmed up.
double OneBit(const EncodingOptions&, std::uint32_t) { return 1 / kFloatBits; }

}  // namespace

const std::array<EncodingRow, kEncodingNames.size()> kEncodings = {{
    {.encoding = Encoding::kDense, .share = Dense, .for_auto = ForAuto::kByTime},
    {.encoding = Encoding::kFloat16,
     .share = SixteenBits,
     .for_auto = ForAuto::kByTime,
     .updates = 8,
     .seconds_per_value = 5e-9},
    // Eight times as coarse as float16 for the same bytes: for who wants its range.
    {.encoding = Encoding::kBfloat16, .share = SixteenBits},
    {.encoding = Encoding::kDq,
     .share = Dq,
     .deviation = Deviation::kNoise,
     .for_auto = ForAuto::kByLoss,
     .updates = 40,
     .seconds_per_value = 23e-9},
    // Of a hundredth of the values little is learned: never the best where it was measured.
    {.encoding = Encoding::kSketch, .share = Sketch, .deviation = Deviation::kResidual},
    {.encoding = Encoding::kAdacomp,
     .share = Adacomp,
     .deviation = Deviation::kResidual,
     .for_auto = ForAuto::kByLoss,
     .updates = 25,
     .seconds_per_value = 15e-9},
    {.encoding = Encoding::kOneBit, .share = OneBit, .deviation = Deviation::kResidual},
}};

}  // namespace tactus::policies
