// The device of the twin tests, where it is the double.

#include <functional>

#include "tests/cuda/twins/twin_test.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda {

std::string WhyNoDevice(const std::string& test) {
  const bool reverse = std::hash<std::string>{}(test) % 2 != 0;
  cuda_double::Reset(
      {.order = reverse ? cuda_double::Order::kReverse : cuda_double::Order::kForward});
  return "";
}

}  // namespace tactus::cuda
