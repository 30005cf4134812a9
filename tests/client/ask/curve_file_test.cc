#include "client/ask/curve_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

std::string ErrorOf(const std::string& text) {
  return std::string(ParseCurve(text).status().message());
}

TEST(CurveFileTest, ARoundIsALine) {
  const std::string text = CurveText({{.round = 1,
                                       .seconds = 0.5,
                                       .samples = 64,
                                       .loss = 2.25,
                                       .loss_smoothed = 2.5,
                                       .plan_version = 3},
                                      {.round = 2, .seconds = 1, .samples = 128, .loss = NAN}});

  EXPECT_EQ(text,
            "seconds,round,samples,loss,loss_smoothed,plan\n"
            "0.5,1,64,2.25,2.5,3\n"
            "1,2,128,nan,0,0\n");
}

TEST(CurveFileTest, WhatIsWrittenIsRead) {
  const std::string text = CurveText(
      {{.round = 1, .samples = 64, .loss = 0.1}, {.round = 2, .samples = 128, .loss = 1.0 / 3}});

  const auto points = ParseCurve(text);

  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ(points->size(), 2u);
  EXPECT_EQ((*points)[0].samples, 64);
  EXPECT_EQ((*points)[0].loss, 0.1);
  EXPECT_EQ((*points)[1].loss, 1.0 / 3);
}

TEST(CurveFileTest, ColumnsMayStandInAnyOrderAmongOthers) {
  const auto points = ParseCurve("loss,note,samples\n1.5,x,10");

  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_EQ((*points)[0].samples, 10);
  EXPECT_EQ((*points)[0].loss, 1.5);
}

TEST(CurveFileTest, LinesMayEndAsOnWindows) {
  const auto points = ParseCurve("samples,loss\r\n10,1.5\r\n20,1\r\n");

  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ(points->size(), 2u);
  EXPECT_EQ((*points)[1].loss, 1);
}

TEST(CurveFileTest, MistakesNameTheLine) {
  EXPECT_EQ(ErrorOf(""),
            "line 1: found no column \"samples\", allowed is one each of samples and loss");
  EXPECT_EQ(ErrorOf("samples,loss,loss\n1,2,3\n"),
            "line 1: found a second column \"loss\", allowed is one each of samples and loss");
  EXPECT_EQ(ErrorOf("samples,loss\n"), "line 1: no line with numbers follows");
  EXPECT_EQ(ErrorOf("samples,loss\n1,x\n"), "line 2: found \"x\", allowed is a finite number");
  EXPECT_EQ(ErrorOf("samples,loss\n1,nan\n"), "line 2: found \"nan\", allowed is a finite number");
  EXPECT_EQ(ErrorOf("samples,loss\n1,2\n\n2,1\n"),
            "line 3: found \"\", allowed is a finite number");
  EXPECT_EQ(ErrorOf("samples,loss\n1\n"), "line 2: too few columns");
  EXPECT_EQ(ErrorOf("samples,loss\n5,1\n5,1\n"),
            "line 3: found 5 samples, allowed are more than on the line before");
  EXPECT_EQ(ErrorOf("samples,loss\n-5,1\n"), "line 2: found -5 samples, allowed are 0 or more");
}

TEST(CurveFileTest, ErrorsOfAFileBeginWithItsPath) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/curve.csv";

  EXPECT_EQ(ReadCurveFile(path).status().message(),
            path + ": cannot read: No such file or directory");

  std::ofstream(path) << "samples,loss\n1,x\n";
  EXPECT_EQ(ReadCurveFile(path).status().message(),
            path + ": line 2: found \"x\", allowed is a finite number");
  EXPECT_FALSE(ReadCurveFile(folder.path()).ok());
}

}  // namespace
}  // namespace tactus::client
