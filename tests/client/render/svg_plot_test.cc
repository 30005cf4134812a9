#include "client/render/svg_plot.h"

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

TEST(AxisTicksTest, OfCountsAreWhole) {
  EXPECT_THAT(AxisTicks(0.85, 4.15, Ticks::kWhole), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(AxisTicks(0, 2, Ticks::kWhole), ElementsAre(0, 1, 2));
  EXPECT_THAT(AxisTicks(0, 40, Ticks::kWhole), ElementsAre(0, 5, 10, 15, 20, 25, 30, 35, 40));
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
  const std::string svg = DrawSvg(SamplePlot(10)).svg;

  EXPECT_THAT(svg, HasSubstr("<title>demo &lt;1&gt; &amp; &quot;2&quot;</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>a &lt; b &amp; c</title>"));
}

TEST(DrawSvgTest, MarksOutsideOfTheAxisAreLeftOut) {
  EXPECT_EQ(CountOfText(DrawSvg(SamplePlot(10)).svg, "class=\"mark\""), 10u);
}

TEST(DrawSvgTest, IsBoundedWhateverIsInIt) {
  Plot plot = SamplePlot(1'000'000);
  for (int i = 0; i < 100'000; ++i)
    plot.marks.push_back({.x = 10.0 * i, .text = std::string(900, '"')});
  std::ranges::stable_sort(plot.marks, {}, &PlotMark::x);
  const auto [svg, without_text] = DrawSvg(plot);

  EXPECT_LT(svg.size(), 2'000'000u);
  EXPECT_LT(CountOfText(svg, "class=\"mark\""), 300u);
  EXPECT_GT(without_text, 90'000u);
  EXPECT_THAT(svg, HasSubstr("class=\"band\""));
}

Plot OneCurve(PlotShape shape, const std::vector<double>& values) {
  Plot plot{.x_begin = 0, .panels = {{.title = "P", .shape = shape, .series = {{.name = "y"}}}}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    plot.panels[0].series[0].curve.Add(static_cast<double>(i + 1), values[i]);
  }
  return plot;
}

TEST(DrawSvgTest, MarksThatCannotBeToldApartShareALineAndTheirTexts) {
  Plot plot = OneCurve(PlotShape::kLine, {1, 2, 3, 4});
  plot.marks = {
      {.x = 2, .text = "first"}, {.x = 2.001, .text = "second"}, {.x = 3, .text = "third"}};

  const auto [svg, without_text] = DrawSvg(plot);

  EXPECT_EQ(without_text, 0u);
  EXPECT_EQ(CountOfText(svg, "class=\"mark\""), 2u);
  EXPECT_THAT(svg, HasSubstr("<title>first\nsecond</title>"));
}

TEST(DrawSvgTest, AMarkIsALineInEachPanelAlone) {
  Plot plot = OneCurve(PlotShape::kLine, {1, 2});
  plot.panels.push_back(plot.panels[0]);
  plot.marks = {{.x = 1, .text = "m"}};

  EXPECT_THAT(DrawSvg(plot).svg,
              HasSubstr("<path class=\"seen\" d=\"M508.0 56.0v180.0M508.0 288.0v180.0\"/>"));
}

TEST(DrawSvgTest, CountsAreStepsFromTheAxisOnAndLabelledWhole) {
  Plot plot = OneCurve(PlotShape::kCounts, {1, 1, 1, 1});
  plot.x_whole = true;
  const std::string svg = DrawSvg(plot).svg;

  EXPECT_THAT(svg,
              HasSubstr(" d=\"M72.0 146.0 V146.0H290.0V146.0H508.0V146.0H726.0V146.0H944.0\""));
  EXPECT_THAT(svg, HasSubstr(">0</text>"));  // of 0 to 2
  EXPECT_THAT(svg, HasSubstr(">2</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">1.5</text>")));
}

TEST(DrawSvgTest, ALegendThatDoesNotFitBesideItsTitleHasALine) {
  Plot plot = OneCurve(PlotShape::kLine, {1, 2});
  plot.panels[0].series.resize(9, plot.panels[0].series[0]);
  for (PlotSeries& series : plot.panels[0].series) series.name = "rank 1";
  plot.panels[0].title = "Batch size [samples of a step]";
  const std::string beside = DrawSvg(plot).svg;
  for (PlotSeries& series : plot.panels[0].series) series.name = "worker 123";
  const std::string below = DrawSvg(plot).svg;

  EXPECT_THAT(beside, HasSubstr("y=\"48.0\" class=\"panel\""));
  EXPECT_THAT(beside, HasSubstr("d=\"M332.0 44.0h12\""));  // right of the title
  EXPECT_THAT(below, HasSubstr("y=\"48.0\" class=\"panel\""));
  EXPECT_THAT(below, HasSubstr("d=\"M72.0 62.0h12\""));  // below it
}

TEST(DrawSvgTest, WhatNoXmlMayHaveIsReplaced) {
  const std::string svg = DrawSvg({.title = "a\xef\xbf\xbe\xef\xbf\xbf"}).svg;

  EXPECT_THAT(svg, HasSubstr("<title>a\xef\xbf\xbd\xef\xbf\xbd</title>"));
}

TEST(DrawSvgTest, OnePointIsADotAndNoneIsAnEmptyFrame) {
  EXPECT_THAT(DrawSvg(SamplePlot(1)).svg, HasSubstr("<circle"));
  const std::string none = DrawSvg(SamplePlot(0)).svg;
  EXPECT_THAT(none, Not(HasSubstr("nan")));
  EXPECT_THAT(none, Not(HasSubstr("inf")));
  EXPECT_THAT(none, HasSubstr("class=\"frame\""));
}

TEST(DrawSvgTest, AColourIsDefinedForLightAndDark) {
  const std::string svg = DrawSvg(SamplePlot(2)).svg;

  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("http://www.w3.org/1999")));  // nothing from outside
}

}  // namespace
}  // namespace tactus::client
