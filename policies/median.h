// The middle of some numbers.

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tactus::policies {

// Of an even number of them the greater one of the two in the middle. Requires: !values.empty().
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tactus::policies
