#include "client/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t CountOfText(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(CurveTest, KeepsEachPointWhileThereAreFew) {
  Curve curve;
  for (int i = 0; i < static_cast<int>(Curve::kBucketsMax); ++i) curve.Add(i, 2 * i);

  ASSERT_EQ(curve.buckets().size(), Curve::kBucketsMax);
  EXPECT_EQ(curve.buckets()[7].x_first, 7);
  EXPECT_EQ(curve.buckets()[7].x_last, 7);
  EXPECT_EQ(curve.buckets()[7].low, 14);
  EXPECT_EQ(curve.buckets()[7].high, 14);
}

// Against all points of each bucket.
TEST(CurveTest, OfAMillionPointsTheExtremesStayInTheirPlaces) {
  constexpr int kPoints = 1'000'000;
  Rng rng(1);
  std::vector<double> all;
  Curve curve;
  for (int i = 0; i < kPoints; ++i) {
    all.push_back(i == 777'777 ? -50 : rng.Uniform());
    curve.Add(i, all.back());
  }

  const std::vector<Curve::Bucket>& buckets = curve.buckets();
  EXPECT_LE(buckets.size(), Curve::kBucketsMax);
  EXPECT_GT(buckets.size(), Curve::kBucketsMax / 2 - 1);
  double next = 0;
  for (const Curve::Bucket& bucket : buckets) {
    ASSERT_EQ(bucket.x_first, next);
    next = bucket.x_last + 1;
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(bucket.x_first);
    const auto to = all.begin() + static_cast<std::ptrdiff_t>(next);
    ASSERT_EQ(bucket.low, *std::min_element(from, to));
    ASSERT_EQ(bucket.high, *std::max_element(from, to));
    ASSERT_EQ(bucket.last, *(to - 1));
  }
  EXPECT_EQ(next, kPoints);
}

TEST(CurveTest, LeavesOutWhatIsNoNumber) {
  Curve curve;
  curve.Add(0, std::nan(""));
  curve.Add(1, std::numeric_limits<double>::infinity());
  curve.Add(std::nan(""), 1);

  EXPECT_TRUE(curve.empty());
}

TEST(AxisTicksTest, AreRoundNumbersWithinTheAxis) {
  EXPECT_THAT(AxisTicks(0, 1), ElementsAre(0, 0.2, 0.4, 0.6, 0.8, 1));
  EXPECT_THAT(AxisTicks(0.05, 0.31), ElementsAre(0.05, 0.1, 0.15, 0.2, 0.25, 0.3));
  EXPECT_THAT(AxisTicks(-3, 3), ElementsAre(-3, -2, -1, 0, 1, 2, 3));
  EXPECT_THAT(AxisTicks(900, 100'000), ElementsAre(20'000, 40'000, 60'000, 80'000, 100'000));
}

TEST(AxisTicksTest, AreThreeToNineOfAnyAxis) {
  Rng rng(2);
  for (int i = 0; i < 1000; ++i) {
    const double low = (rng.Uniform() - 0.5) * std::pow(10, 10 * rng.Uniform() - 5);
    const double high = low + std::pow(10, 10 * rng.Uniform() - 5);
    const std::vector<double> ticks = AxisTicks(low, high);
    ASSERT_GE(ticks.size(), 3u) << low << ' ' << high;
    ASSERT_LE(ticks.size(), 9u) << low << ' ' << high;
    const double room = 1e-9 * (std::abs(low) + std::abs(high));
    ASSERT_GE(ticks.front(), low - room);
    ASSERT_LE(ticks.back(), high + room);
  }
}

Plot SamplePlot(int points) {
  Plot plot{.title = "demo <1> & \"2\"", .x_title = "round"};
  plot.panels.resize(2);
  plot.panels[0].title = "Loss";
  plot.panels[0].series.resize(1);
  plot.panels[1].title = "Batch";
  plot.panels[1].series.resize(12);
  for (int i = 0; i < points; ++i) {
    plot.panels[0].series[0].curve.Add(i, std::sin(i) + 2);
    for (PlotSeries& series : plot.panels[1].series) series.curve.Add(i, i % 7);
  }
  for (int i = 0; i < 600; ++i) plot.marks.push_back({.x = 1.0 * i, .text = "a < b & c"});
  return plot;
}

TEST(DrawSvgTest, TextOfOthersIsEscaped) {
  const std::string svg = DrawSvg(SamplePlot(10));

  EXPECT_THAT(svg, HasSubstr("<title>demo &lt;1&gt; &amp; &quot;2&quot;</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>a &lt; b &amp; c</title>"));
}

TEST(DrawSvgTest, MarksOutsideOfTheAxisAreLeftOut) {
  EXPECT_EQ(CountOfText(DrawSvg(SamplePlot(10)), "class=\"mark\""), 10u);
}

TEST(DrawSvgTest, IsBoundedWhateverIsInIt) {
  const std::string svg = DrawSvg(SamplePlot(1'000'000));

  EXPECT_LT(svg.size(), 2'000'000u);
  EXPECT_EQ(CountOfText(svg, "class=\"mark\""), kPlotMarksMax);
  EXPECT_THAT(svg, HasSubstr("class=\"band\""));
}

TEST(DrawSvgTest, OnePointIsADotAndNoneIsAnEmptyFrame) {
  EXPECT_THAT(DrawSvg(SamplePlot(1)), HasSubstr("<circle"));
  const std::string none = DrawSvg(SamplePlot(0));
  EXPECT_THAT(none, Not(HasSubstr("nan")));
  EXPECT_THAT(none, Not(HasSubstr("inf")));
  EXPECT_THAT(none, HasSubstr("class=\"frame\""));
}

TEST(DrawSvgTest, AColourIsDefinedForLightAndDark) {
  const std::string svg = DrawSvg(SamplePlot(2));

  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("http://www.w3.org/1999")));  // nothing from outside
}

}  // namespace
}  // namespace tactus::client
