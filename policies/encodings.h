// The encodings that a plan may have, a row each: what the policies must know of them.

#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/fields.h"
#include "policies/encoding.h"

namespace tactus::policies {

// One encoding that the engine has; its arithmetic is agent/engine's.
struct EncodingRow {
  Encoding encoding = Encoding::kDense;
  double share = 1;  // of float32's bytes, that a vector travels in; > 0
  // Whether it is `auto`'s to choose: an error that is bounded, and too small to be measured in the
  // loss. Of float16 that is 2^-11 of a value, within a range that a piece is scaled to; eight
  // times as much of bfloat16 is left to the user.
  bool for_auto = false;
};

// In the order of the enumerators; those that have no row yet are in no plan and in no job file.
inline constexpr auto kEncodings = std::to_array<EncodingRow>({
    {Encoding::kDense, 1, true},
    {Encoding::kFloat16, 0.5, true},
    {Encoding::kBfloat16, 0.5, false},
});

constexpr const EncodingRow& RowOf(Encoding encoding) {
  return kEncodings[static_cast<std::size_t>(encoding)];
}

// Of these, by Encoding.
inline constexpr auto kPlanEncodingNames = [] {
  std::array<std::string_view, kEncodings.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEncodingNames[i];
  return names;
}();

}  // namespace tactus::policies

namespace tactus {

template <>
inline constexpr int kEnumMax<policies::Encoding> = static_cast<int>(policies::kEncodings.size()) -
                                                    1;

}  // namespace tactus
