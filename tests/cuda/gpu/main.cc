// The main of the tests on a real device: says by its exit code when it could try nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kNothingTried = 77;  // what ctest is told to show as skipped

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int skipped = tests.skipped_test_count();
  if (result == 0 && skipped > 0 && std::getenv("TACTUS_REQUIRE_GPU") != nullptr) {
    std::fprintf(stderr, "%d tests were skipped, which TACTUS_REQUIRE_GPU does not allow\n",
                 skipped);
    return 1;
  }
  return result == 0 && skipped == tests.test_to_run_count() ? kNothingTried : result;
}
