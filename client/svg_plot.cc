#include "client/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "client/quantity.h"
#include "client/text.h"

namespace tactus::client {
namespace {

// Of the drawing, in its own units.
constexpr double kWidth = 960;
constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 56;
constexpr double kPanelHeight = 180;
constexpr double kPanelGap = 48;
constexpr double kBottom = 48;
constexpr std::size_t kSeriesMax = 9;

// Colours that differ for eyes that see few of them, light and dark enough for both grounds.
constexpr const char* kStyle =
    "svg{color-scheme:light dark}\n"
    "text{font:12px system-ui,sans-serif;fill:#1f2328}\n"
    ".ground{fill:#fff}.title{font-weight:600;font-size:15px}.panel{font-weight:600}\n"
    ".grid{stroke:#8886;stroke-width:1}.frame{stroke:#888;fill:none}\n"
    ".line{fill:none;stroke-width:1.5;stroke-linejoin:round}.band{opacity:.3;stroke:none}\n"
    ".first{stroke-width:2.2}\n"
    ".mark{stroke:#b35900;stroke-width:1.5;stroke-dasharray:4 3}\n"
    ".mark:hover{stroke-width:4;stroke-dasharray:none}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}"
    ".mark{stroke:#ffb454}}\n";
constexpr std::array<const char*, kSeriesMax> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                          "#cc79a7", "#56b4e9", "#a58a00",
                                                          "#7f6fc9", "#8c8c8c", "#b2543f"};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Coordinate(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string Attribute(const char* name, double value) {
  return " " + std::string(name) + "=\"" + Coordinate(value) + "\"";
}

std::string Text(double x, double y, const std::string& rest, const std::string& text) {
  return "<text" + Attribute("x", x) + Attribute("y", y) + rest + ">" + Escaped(text) + "</text>\n";
}

struct Range {
  double low = 0;
  double high = 1;
};

// With some room, and never empty.
Range Widened(double low, double high) {
  if (!(low <= high)) return {};
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    return {.low = low - room, .high = high + room};
  }
  const double room = (high - low) * 0.05;
  const double below = low >= 0 ? std::min(low, room) : room;  // counts stay above 0
  return {.low = low - below, .high = high + room};
}

Range YRange(const PlotPanel& panel) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const PlotSeries& series : panel.series) {
    for (const Curve::Bucket& bucket : series.curve.buckets()) {
      low = std::min(low, bucket.low);
      high = std::max(high, bucket.high);
    }
  }
  return Widened(low, high);
}

Range XRange(const Plot& plot) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const PlotPanel& panel : plot.panels) {
    for (const PlotSeries& series : panel.series) {
      if (series.curve.empty()) continue;
      low = std::min(low, series.curve.buckets().front().x_first);
      high = std::max(high, series.curve.buckets().back().x_last);
    }
  }
  if (!(low <= high)) return {};
  return low == high ? Range{.low = low - 0.5, .high = high + 0.5} : Range{low, high};
}

// One panel's axes and curves.
class PanelDrawing {
 public:
  PanelDrawing(const PlotPanel& panel, Range x, double top)
      : panel_(panel), x_(x), y_(YRange(panel)), top_(top) {}

  std::string Draw() const {
    std::string out = Text(kLeft, top_ - 8, " class=\"panel\"", panel_.title);
    out += Axes() + Legend();
    const std::size_t count = std::min(panel_.series.size(), kSeriesMax);
    for (std::size_t i = count; i-- > 0;) out += Line(i);
    return out;
  }

 private:
  double X(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    return top_ + kPanelHeight - (y - y_.low) / (y_.high - y_.low) * kPanelHeight;
  }
  std::string Point(double x, double y) const {
    return Coordinate(X(x)) + " " + Coordinate(Y(y)) + " ";
  }

  std::string Axes() const {
    const double bottom = top_ + kPanelHeight;
    std::string out;
    for (const double tick : AxisTicks(y_.low, y_.high)) {
      out += "<path class=\"grid\" d=\"M" + Coordinate(kLeft) + " " + Coordinate(Y(tick)) + "H" +
             Coordinate(kWidth - kRight) + "\"/>\n";
      out += Text(kLeft - 8, Y(tick) + 4, " text-anchor=\"end\"", FormatNumber(tick));
    }
    for (const double tick : AxisTicks(x_.low, x_.high)) {
      out += "<path class=\"grid\" d=\"M" + Coordinate(X(tick)) + " " + Coordinate(top_) + "V" +
             Coordinate(bottom) + "\"/>\n";
      out += Text(X(tick), bottom + 16, " text-anchor=\"middle\"", FormatNumber(tick));
    }
    return out + "<rect class=\"frame\"" + Attribute("x", kLeft) + Attribute("y", top_) +
           Attribute("width", kWidth - kLeft - kRight) + Attribute("height", kPanelHeight) + "/>\n";
  }

  // Names above the panel, to the right; a single curve has that of the panel.
  std::string Legend() const {
    if (panel_.series.size() < 2) return "";
    const std::size_t count = std::min(panel_.series.size(), kSeriesMax);
    constexpr double kColumn = 84;
    std::string out;
    double x = kWidth - kRight - kColumn * static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i, x += kColumn) {
      out += "<path class=\"line first\" stroke=\"" + std::string(kColours[i]) + "\" d=\"M" +
             Coordinate(x) + " " + Coordinate(top_ - 12) + "h14\"/>\n";
      out += Text(x + 18, top_ - 8, "", Cut(panel_.series[i].name, 10));
    }
    return out;
  }

  std::string Line(std::size_t index) const {
    const std::vector<Curve::Bucket>& buckets = panel_.series[index].curve.buckets();
    if (buckets.empty()) return "";
    const std::string colour = kColours[index];
    std::string upper;
    std::string lower;
    std::string line;
    bool joined = false;
    for (const Curve::Bucket& bucket : buckets) {
      joined |= bucket.low < bucket.high;
      upper += Point(bucket.x_last, bucket.high);
      line += Point(bucket.x_last, bucket.last);
    }
    for (std::size_t i = buckets.size(); i-- > 0;) {
      lower += Point(buckets[i].x_last, buckets[i].low);
    }
    std::string out;
    if (joined) {
      out = "<path class=\"band\" fill=\"" + colour + "\" d=\"M" + upper + lower + "Z\"/>\n";
    }
    if (buckets.size() == 1) {
      return out + "<circle r=\"3\" fill=\"" + colour + "\"" +
             Attribute("cx", X(buckets[0].x_last)) + Attribute("cy", Y(buckets[0].last)) + "/>\n";
    }
    return out + "<path class=\"line" + (index == 0 ? " first" : "") + "\" stroke=\"" + colour +
           "\" d=\"M" + line + "\"/>\n";
  }

  const PlotPanel& panel_;
  const Range x_;
  const Range y_;
  const double top_;
};

std::string Marks(const Plot& plot, const Range& x, double bottom) {
  std::string out;
  for (std::size_t i = 0; i < std::min(plot.marks.size(), kPlotMarksMax); ++i) {
    const PlotMark& mark = plot.marks[i];
    if (!(mark.x >= x.low && mark.x <= x.high)) continue;
    const double at = kLeft + (mark.x - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight);
    out += "<path class=\"mark\" d=\"M" + Coordinate(at) + " " + Coordinate(kTop) + "V" +
           Coordinate(bottom) + "\"><title>" + Escaped(Cut(mark.text, 500)) + "</title></path>\n";
  }
  return out;
}

}  // namespace

void Curve::Add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  if (!buckets_.empty() && points_in_last_ < points_a_bucket_) {
    Bucket& last = buckets_.back();
    last = {.x_first = last.x_first,
            .x_last = x,
            .low = std::min(last.low, y),
            .high = std::max(last.high, y),
            .last = y};
    ++points_in_last_;
    return;
  }
  if (buckets_.size() == kBucketsMax) {
    for (std::size_t i = 0; i < kBucketsMax / 2; ++i) {
      const Bucket& a = buckets_[2 * i];
      const Bucket& b = buckets_[2 * i + 1];
      buckets_[i] = {.x_first = a.x_first,
                     .x_last = b.x_last,
                     .low = std::min(a.low, b.low),
                     .high = std::max(a.high, b.high),
                     .last = b.last};
    }
    buckets_.resize(kBucketsMax / 2);
    points_a_bucket_ *= 2;
  }
  buckets_.push_back({.x_first = x, .x_last = x, .low = y, .high = y, .last = y});
  points_in_last_ = 1;
}

std::vector<double> AxisTicks(double low, double high) {
  const double rough = (high - low) / 8;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step);
  for (int i = 0; i < 16 && (first + i) * step <= high; ++i) {
    // Of 3 * 0.1 the nearest number that reads 0.3.
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.12g", (first + i) * step);
    ticks.push_back(ParseNumber(text.data()).value_or(0) + 0.0);
  }
  return ticks;
}

std::string DrawSvg(const Plot& plot) {
  const auto panels = static_cast<double>(plot.panels.size());
  const double bottom = kTop + panels * (kPanelHeight + kPanelGap) - kPanelGap;
  const double height = bottom + kBottom;
  const Range x = XRange(plot);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " +
                    Coordinate(kWidth) + " " + Coordinate(height) + "\"" +
                    Attribute("width", kWidth) + Attribute("height", height) + ">\n<title>" +
                    Escaped(plot.title) + "</title>\n<style>\n" + kStyle + "</style>\n" +
                    "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";
  out += Text(kLeft, 22, " class=\"title\"", plot.title);
  double top = kTop;
  for (const PlotPanel& panel : plot.panels) {
    out += PanelDrawing(panel, x, top).Draw();
    top += kPanelHeight + kPanelGap;
  }
  out += Marks(plot, x, bottom);
  out += Text((kLeft + kWidth - kRight) / 2, bottom + 36, " text-anchor=\"middle\"", plot.x_title);
  return out + "</svg>\n";
}

}  // namespace tactus::client
