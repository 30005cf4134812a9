// The main of tests on the double of the CUDA runtime: `--schedule=lazy|eager|random|random:SEED`
// says when streams do what is queued on them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string_view>

#include "tests/support/cuda_double/schedule.h"

namespace {

constexpr int kUsage = 64;

}  // namespace

int main(int argc, char** argv) {
  namespace cuda_double = tactus::cuda_double;
  constexpr std::string_view kOption = "--schedule=";
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    std::optional<cuda_double::Timing> timing;
    if (word.starts_with(kOption)) timing = cuda_double::ParseTiming(word.substr(kOption.size()));
    if (!timing) {
      std::fprintf(stderr, "'%s': expected --schedule=lazy|eager|random|random:SEED\n", argv[i]);
      return kUsage;
    }
    cuda_double::SetTiming(*timing);
    // At once: a test that crashes tells nothing afterwards.
    std::printf("again with: --schedule=%s\n", cuda_double::TextOf(*timing).c_str());
  }
  return RUN_ALL_TESTS();
}
