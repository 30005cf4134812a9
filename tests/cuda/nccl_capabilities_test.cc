#include "cuda/nccl_capabilities.h"

#include "gtest/gtest.h"

namespace tactus::cuda::nccl {
namespace {

TEST(NcclCapabilitiesTest, EveryCallCountsFromItsRelease) {
  struct Row {
    int version;
    Capabilities expected;
  };
  const Row rows[] = {
      {0, {}},
      {2708, {}},  // 2.7.8 by the older scheme
      {22702, {}},
      {22703, {.shrink = true}},
      {22802, {.shrink = true}},
      {22803, {}},
      {22807, {}},  // has ncclCommRevoke, and is left out
      {22808, {}},
      {22809, {.shrink = true, .revoke = true}},
      {22901, {.shrink = true, .revoke = true}},
      {22902, {.shrink = true, .revoke = true, .grow = true}},
      {23007, {.shrink = true, .revoke = true, .grow = true}},
  };

  for (const Row& row : rows) EXPECT_EQ(OfVersion(row.version), row.expected) << row.version;
}

TEST(NcclCapabilitiesTest, VersionsAreWrittenAsPeopleDo) {
  EXPECT_EQ(VersionText(0), "none");
  EXPECT_EQ(VersionText(2708), "2.7.8");
  EXPECT_EQ(VersionText(22809), "2.28.9");
  EXPECT_EQ(VersionText(23000), "2.30.0");
}

TEST(NcclCapabilitiesTest, WhateverTheVersionANewProcessHelps) {
  for (const int version : {0, 22703, 22805, 22809, 99999}) {
    EXPECT_EQ(OfVersion(version).fallback, Fallback::kNewProcess);
  }
}

}  // namespace
}  // namespace tactus::cuda::nccl
