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

}  // namespace
}  // namespace tactus::cuda::nccl
