// How bench_kernels tells what it measured. The numbers here are made up.

#include "bench/kernels/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"

namespace tactus::bench {
namespace {

using testing::HasSubstr;

Results SomeResults() {
  const Spread time{.min = 9, .median = 10, .max = 12};
  Results results{
      .run = {.device = "A \"device\"", .driver = "13.1", .runtime = "13.0", .graph = true},
      .copy_bytes_per_s = {.min = 1.9e12, .median = 2e12, .max = 2.1e12}};
  results.bandwidth = {{.operation = "axpy",
                        .formula = "12 n",
                        .bytes = kMebibyte,
                        .bytes_per_s = {.min = 0.9e12, .median = 1e12, .max = 1.1e12},
                        .copy_share = {.min = 0.45, .median = 0.5, .max = 0.55},
                        .on_device_us = time,
                        .on_host_us = time},
                       {.operation = "lamb",
                        .formula = "40 n",
                        .segments = 64,
                        .bytes = 16 * kMebibyte,
                        .bytes_per_s = {.min = 1.8e12, .median = 1.8e12, .max = 1.8e12},
                        .copy_share = {.min = 0.9, .median = 0.9, .max = 0.9},
                        .on_device_us = time,
                        .on_host_us = time}};
  results.overhead = {{.operation = "axpy", .on_device_us = time, .on_host_us = time}};
  results.left_out = {{.operation = "lamb", .segments = 1, .bytes = 256 * kMebibyte}};
  return results;
}

TEST(ReportTest, TablesHaveACellForEverySizeAndLeaveOutWhatWasNotMeasured) {
  testing::internal::CaptureStdout();
  PrintTables(SomeResults(), {kMebibyte, 16 * kMebibyte});
  const std::string text = testing::internal::GetCapturedStdout();

  EXPECT_THAT(text, HasSubstr("| operation | segments | bytes | 1 MiB | 16 MiB |\n"));
  EXPECT_THAT(text, HasSubstr("| axpy |  | 12 n | 1000: 0.50 (0.45 to 0.55) | |\n"));
  EXPECT_THAT(text, HasSubstr("| lamb | 64 | 40 n | | 1800: 0.90 (0.90 to 0.90) |\n"));
  EXPECT_THAT(text, HasSubstr("| axpy | 10.00 (9.00 to 12.00) | 10.00 (9.00 to 12.00) |\n"));
  EXPECT_THAT(text, HasSubstr("2000 GB/s (1900 to 2100)"));
  EXPECT_THAT(text, HasSubstr("0 repetitions, bandwidth by graph replay"));
  EXPECT_THAT(text, HasSubstr("does not hold it: lamb, 1 segments, 256 MiB"));
}

TEST(ReportTest, AVerdictIsGivenWhereThereIsAnAim) {
  Results results = SomeResults();
  results.bandwidth[0].aimed = true;
  results.bandwidth[1].aimed = true;
  testing::internal::CaptureStdout();
  PrintTables(results, {kMebibyte, 16 * kMebibyte});
  const std::string text = testing::internal::GetCapturedStdout();

  EXPECT_THAT(text, HasSubstr("0.50 (0.45 to 0.55), **missed** |"));
  EXPECT_THAT(text, HasSubstr("0.90 (0.90 to 0.90), met |"));
  EXPECT_THAT(text, HasSubstr("the aim is 0.9 from 64 MiB, for reductions and LAMB from 256 MiB"));
}

TEST(ReportTest, JsonHoldsEveryFigure) {
  const std::string path = testing::TempDir() + "/tactus-bench-kernels.json";
  ASSERT_TRUE(WriteJson(SomeResults(), path));

  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);

  EXPECT_EQ(json["device"], "A \"device\"");
  EXPECT_EQ(json["graph"], true);
  EXPECT_EQ(json["bandwidth"][0]["operation"], "axpy");
  EXPECT_EQ(json["bandwidth"][1]["segments"], 64);
  EXPECT_EQ(json["bandwidth"][1]["copy_share"]["median"], 0.9);
  EXPECT_EQ(json["overhead"][0]["on_host_us"]["max"], 12);
  EXPECT_FALSE(json["bandwidth"][1].contains("aim"));
  EXPECT_FALSE(json["overhead"][0].contains("copy_share"));

  Results results = SomeResults();
  results.bandwidth[0].aimed = true;
  ASSERT_TRUE(WriteJson(results, path));
  const nlohmann::json aimed = nlohmann::json::parse(std::ifstream(path))["bandwidth"][0];
  EXPECT_EQ(aimed["aim"], 0.9);
  EXPECT_EQ(aimed["met"], false);
}

TEST(ReportTest, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(WriteJson(SomeResults(), testing::TempDir() + "/no/such/folder.json"));
}

}  // namespace
}  // namespace tactus::bench
