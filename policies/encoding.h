// In which form the members' vectors travel while they are summed.

#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tactus::policies {

// Records keep the numbers.
enum class Encoding {
  kDense,     // float32
  kFloat16,   // IEEE binary16, to nearest even
  kBfloat16,  // to nearest even
  kDq,        // DQ-SGD: unbiased quantisation, bits by the state of the training
  kSketch,    // gs-SGD: a count sketch, then the values that it shows to be large
  kAdacomp,   // AdaComp: by bins, what stands out of the residual
  kOneBit,    // 1-bit Adam and LAMB: signs of the momentum, with error feedback
};

// In the order of the enumerators, as messages, records and job files have them.
inline constexpr auto kEncodingNames = std::to_array<std::string_view>(
    {"dense", "float16", "bfloat16", "dq", "sketch", "adacomp", "one_bit"});
constexpr std::string_view NameOf(Encoding encoding) {
  return kEncodingNames[static_cast<std::size_t>(encoding)];
}

}  // namespace tactus::policies
