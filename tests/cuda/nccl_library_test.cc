#include <dlfcn.h>

#include <cstdlib>

#include "cuda/nccl.h"
#include "gtest/gtest.h"

namespace tactus::cuda::nccl {
namespace {

TEST(NcclLibraryTest, IsOpenedByTheFirstCallWhereTheBuildFoundIt) {
  if (TACTUS_HAVE_NCCL) {
    EXPECT_GE(Version(), 21900) << MakeUniqueId().reason;
  } else {
    EXPECT_EQ(Version(), 0);
    EXPECT_EQ(MakeUniqueId().reason, "this build has no NCCL");
  }
}

// As torch loads its own, by a path and for itself.
TEST(NcclLibraryDeathTest, TheOneThatTheProcessHasLoadedIsTaken) {
  if (!TACTUS_HAVE_NCCL) GTEST_SKIP() << "this build has no NCCL";
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process that has opened none
  EXPECT_EXIT(
      {
        void* const loaded = dlopen(TACTUS_LOADED_NCCL, RTLD_NOW | RTLD_LOCAL);
        std::exit(loaded != nullptr && Version() == 99901 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tactus::cuda::nccl
