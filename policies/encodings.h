// The encodings that a plan may have, a row each: what the policies must know of them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fields.h"
#include "policies/encoding.h"

namespace tactus::policies {

// What a job's file says of its encoding; fields that its policy does not have are left alone.
struct EncodingOptions {
  double bits = 4;                     // dq: of a value at first, [2, 8]
  std::uint32_t bin = 500;             // adacomp [values], >= 1
  std::uint32_t convolution_bin = 50;  // adacomp, of a convolution's weights [values], >= 1
  double share = 0.01;                 // sketch: of the values, that a round applies, (0, 0.25]
  std::uint32_t candidates = 4;        // sketch: values that are looked at for each of these, >= 1
  std::uint32_t rows = 3;              // sketch, odd
  std::uint32_t columns = 0;           // sketch, of kSketchStretch values; 0: one a candidate

  friend bool operator==(const EncodingOptions&, const EncodingOptions&) = default;
};
inline constexpr std::size_t kSketchStretch = 16384;

// What the sum is, beside that of the values.
enum class Deviation {
  kRounding,  // bounded, and far below the noise of gradients
  kNoise,     // right on average
  kResidual,  // what is left out comes in later rounds
};

// When `auto` takes it.
enum class ForAuto {
  kNever,
  kByTime,  // where rounds are found to be shorter: it is too exact to show in the loss
  kByLoss,  // where the loss is found to fall faster with it
};

// One encoding; its arithmetic is agent/engine's.
struct EncodingRow {
  Encoding encoding = Encoding::kDense;
  // What a round sends over what an all-reduce of float32 would, > 0; an estimate where it hangs on
  // the values. members: of the group, >= 2
  double (*share)(const EncodingOptions& options, std::uint32_t members) = nullptr;
  Deviation deviation = Deviation::kRounding;
  ForAuto for_auto = ForAuto::kNever;
  // Encoding, summing and decoding on one core of the machine of docs/benchmarks.md, four members:
  // in updates of sgd with momentum, and of a value. Where auto never takes it: 0.
  double updates = 0;
  double seconds_per_value = 0;
};

// In the order of the enumerators.
extern const std::array<EncodingRow, kEncodingNames.size()> kEncodings;

inline const EncodingRow& RowOf(Encoding encoding) {
  return kEncodings[static_cast<std::size_t>(encoding)];
}

inline double ShareOf(Encoding encoding, std::uint32_t members,
                      const EncodingOptions& options = {}) {
  return RowOf(encoding).share(options, members);
}

// Whether the norm of a sum tells of the noise of gradients. Else noise of the encoding's own is in
// it, or it is not that of the round's gradients; then a round tells nothing of them.
inline bool TellsNoise(Encoding encoding) {
  return RowOf(encoding).deviation == Deviation::kRounding;
}
inline constexpr std::string_view kHidesNoise =
    "its sums hide the noise of gradients, which neither batch nor rate follow then";

}  // namespace tactus::policies

namespace tactus {

template <>
inline constexpr int kEnumMax<policies::Encoding> =
    static_cast<int>(policies::kEncodingNames.size()) - 1;

}  // namespace tactus
