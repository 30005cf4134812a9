#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/client/verbs/command_lines.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;

// A transformer of 12.6 M parameters, which with Adam are 202 MB beside the activations.
class LayoutsTest : public VerbsTest {
 protected:
  LayoutsTest() {
    std::ofstream(file_)
        << "name: demo\n"
           "model: {builtin: bytes-lm, options: {width: 512, heads: 8, layers: 4}}\n"
           "optimizer: {adam: {}}\n"
           "adapt: {batch: {per_worker: 8}}\n";
  }

  const std::string file_ = folder_.path() + "/j.yaml";
};

TEST_F(LayoutsTest, TellsWhatEachLayoutWouldCost) {
  const std::string said = Printed({"layouts", file_, "--device", "4@a:1:16GB", "--batch", "1024"});

  EXPECT_THAT(said, HasSubstr("LAYOUT   REPLICAS"));
  EXPECT_THAT(said, HasSubstr("\nnone "));
  EXPECT_THAT(said, HasSubstr("\n1d of 4 "));
  EXPECT_THAT(said, HasSubstr("\n2d of 4 "));
  EXPECT_THAT(said, HasSubstr("3 devices do not divide"));
  EXPECT_THAT(said, HasSubstr("4 x one device: "));
}

TEST_F(LayoutsTest, AMeshOfSmallDevicesStandsBesideALargeOne) {
  const std::string said =
      Printed({"layouts", file_, "--device", "1@new:4:16GB", "--device", "4@old:1:128MB"});

  EXPECT_THAT(said, HasSubstr("1 x one device beside 1 x "));
}

TEST_F(LayoutsTest, AModelThatFitsNowhereIsRefusedWithTheBytesThatAreMissing) {
  const Answered refused = Tactus({"layouts", file_, "--device", "4@a:1:8MB"});

  EXPECT_EQ(refused.code, ExitCode::kGeneric);
  EXPECT_THAT(refused.out, HasSubstr("each device is short of "));
  EXPECT_THAT(refused.out, HasSubstr(" bytes\n"));
}

TEST_F(LayoutsTest, WhatCannotBeSplitHasTheNearestChoice) {
  const Answered square =
      Tactus({"layouts", file_, "--device", "6@a:1:8GB", "--kind", "2d", "--mesh-devices", "6"});
  EXPECT_EQ(square.code, ExitCode::kUsage);
  EXPECT_THAT(square.err,
              HasSubstr("found 2d with 6 devices, allowed is a square; the nearest is 4"));

  const Answered heads =
      Tactus({"layouts", file_, "--device", "4@a:1:8GB", "--kind", "1d", "--mesh-devices", "3"});
  EXPECT_EQ(heads.code, ExitCode::kUsage);
  EXPECT_THAT(heads.err, HasSubstr("found 8 heads, which 3 devices do not divide"));
}

TEST_F(LayoutsTest, OneDeviceIsNoMesh) {
  const std::string said =
      Printed({"layouts", file_, "--device", "4@a:1:16GB", "--mesh-devices", "4"});
  EXPECT_THAT(said, ::testing::Not(HasSubstr("none")));

  const Answered refused =
      Tactus({"layouts", file_, "--device", "4@a:1:8GB", "--kind", "none", "--mesh-devices", "4"});
  EXPECT_EQ(refused.code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, HasSubstr("found none with 4 devices, allowed is 1"));
}

TEST_F(LayoutsTest, DevicesThatAreNoneAreRefused) {
  for (const char* device : {"4", "4@a", "4@a:1", "0@a:1:8GB", "4@a:fast:8GB", "4@a:1:much",
                             "4@:1:8GB", "4@a:0:8GB", "2000@a:1:8GB", "x@a:1:8GB"}) {
    const Answered refused = Tactus({"layouts", file_, "--device", device});
    EXPECT_EQ(refused.code, ExitCode::kUsage) << device;
    EXPECT_THAT(refused.err, HasSubstr("COUNT@NODE:SPEED:MEMORY")) << device;
  }
  EXPECT_EQ(Tactus({"layouts", file_, "--device", "1@a:1:8GB", "--between", "slow"}).code,
            ExitCode::kUsage);
}

TEST_F(LayoutsTest, OtherModelsHaveNone) {
  const std::string other = folder_.path() + "/other.yaml";
  std::ofstream(other) << "name: demo\nmodel: {builtin: resnet18}\n";

  const Answered refused = Tactus({"layouts", other, "--device", "4@a:1:8GB"});

  EXPECT_EQ(refused.code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, HasSubstr("model.builtin: allowed is bytes-lm"));
}

}  // namespace
}  // namespace tactus::client
