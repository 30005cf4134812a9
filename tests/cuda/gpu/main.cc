// The main of the tests on a real device: says by its exit code when it could try nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

constexpr int kNothingTried = 77;  // what ctest is told to show as skipped

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool none = tests.skipped_test_count() == tests.test_to_run_count();
  return result == 0 && none ? kNothingTried : result;
}
