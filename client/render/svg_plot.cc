#include "client/render/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "client/text/quantity.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

// Of the drawing, in its own units.
constexpr double kWidth = 960;
constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 56;
constexpr double kPanelHeight = 180;
constexpr double kPanelGap = 52;
constexpr double kLegendLine = 18;  // where a legend does not fit beside its title
constexpr double kBottom = 48;
constexpr std::size_t kSeriesMax = 9;
constexpr double kMarkColumn = 3;            // lines nearer to each other are one
constexpr std::size_t kMarksApart = 60;      // of more marks
constexpr double kCrowdedColumn = 18;        // these are one
constexpr std::size_t kMarkTextMax = 500;    // characters of a mark
constexpr std::size_t kMarkTitleMax = 4000;  // bytes of those that share a line
constexpr double kCharacter = 7;             // about so wide; the viewer's font decides

// Colours that differ for eyes that see few of them, light and dark enough for both grounds.
constexpr const char* kStyle =
    "svg{color-scheme:light dark}\n"
    "text{font:12px system-ui,sans-serif;fill:#1f2328}\n"
    ".ground{fill:#fff}.title{font-weight:600;font-size:15px}.panel{font-weight:600}\n"
    ".grid{stroke:#8886;stroke-width:1}.frame{stroke:#888;fill:none}\n"
    ".line{fill:none;stroke-width:1.5;stroke-linejoin:round}.band{opacity:.3;stroke:none}\n"
    ".first{stroke-width:2.2}\n"
    ".seen{stroke:#b35900;stroke-width:1;stroke-dasharray:3 3;opacity:.75}\n"
    ".near{stroke:transparent;stroke-width:9}\n"
    ".mark:hover .seen{stroke-width:2.5;stroke-dasharray:none;opacity:1}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}"
    ".seen{stroke:#ffb454}}\n";
constexpr std::array<const char*, kSeriesMax> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                          "#cc79a7", "#56b4e9", "#a58a00",
                                                          "#7f6fc9", "#8c8c8c", "#b2543f"};

// Printable text without U+FFFE and U+FFFF, which no XML document may have.
std::string Characters(const std::string& text) {
  std::string out = Printable(text);
  for (const char* const none : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none, at)) {
      out.replace(at, 3, "\xef\xbf\xbd");
    }
  }
  return out;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Characters(text)) {
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

std::size_t CharacterCount(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

struct Range {
  double low = 0;
  double high = 1;
};

// With some room, and never empty.
Range Widened(double low, double high, PlotShape shape) {
  if (!(low <= high)) return {};
  if (low == high) {
    double room = low == 0 ? 1 : std::abs(low) * 0.1;
    if (shape == PlotShape::kCounts) room = std::max(1.0, room);
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
  return Widened(low, high, panel.shape);
}

struct XAxis {
  Range range{};
  double first = 0;  // point of all curves
  Ticks ticks = Ticks::kAny;
};

XAxis XAxisOf(const Plot& plot) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const PlotPanel& panel : plot.panels) {
    for (const PlotSeries& series : panel.series) {
      if (series.curve.empty()) continue;
      low = std::min(low, series.curve.buckets().front().x_first);
      high = std::max(high, series.curve.buckets().back().x_last);
    }
  }
  const Ticks ticks = plot.x_whole ? Ticks::kWhole : Ticks::kAny;
  if (!(low <= high)) return {.ticks = ticks};
  const double begin = std::min(low, plot.x_begin.value_or(low));
  Range range{.low = begin, .high = high};
  if (begin == high) range = {.low = begin - 0.5, .high = high + 0.5};
  return {.range = range, .first = low, .ticks = ticks};
}

double XOf(double x, const Range& range) {
  return kLeft + (x - range.low) / (range.high - range.low) * (kWidth - kLeft - kRight);
}

constexpr std::size_t kLegendNameMax = 10;

// Names as wide as they are; 0: a single curve has the name of its panel.
double LegendWidth(const PlotPanel& panel) {
  if (panel.series.size() < 2) return 0;
  double width = 0;
  for (std::size_t i = 0; i < std::min(panel.series.size(), kSeriesMax); ++i) {
    width += 26 + kCharacter * static_cast<double>(
                                   CharacterCount(Cut(panel.series[i].name, kLegendNameMax)));
  }
  return width;
}

bool LegendOnItsOwnLine(const PlotPanel& panel) {
  const double title = kCharacter * static_cast<double>(CharacterCount(panel.title));
  return LegendWidth(panel) > 0 && kLeft + title + 24 + LegendWidth(panel) > kWidth - kRight;
}

// Where each panel begins.
std::vector<double> TopsOf(const Plot& plot) {
  std::vector<double> tops;
  double top = kTop;
  for (const PlotPanel& panel : plot.panels) {
    if (LegendOnItsOwnLine(panel)) top += kLegendLine;
    tops.push_back(top);
    top += kPanelHeight + kPanelGap;
  }
  return tops;
}

// One panel's axes and curves.
class PanelDrawing {
 public:
  PanelDrawing(const PlotPanel& panel, const XAxis& x, double top)
      : panel_(panel), x_(x), y_(YRange(panel)), top_(top) {}

  std::string Draw() const {
    const double title = top_ - 8 - (LegendOnItsOwnLine(panel_) ? kLegendLine : 0);
    std::string out = Text(kLeft, title, " class=\"panel\"", panel_.title);
    out += Axes() + Legend();
    const std::size_t count = std::min(panel_.series.size(), kSeriesMax);
    for (std::size_t i = count; i-- > 0;) out += Line(i);
    return out;
  }

 private:
  double X(double x) const { return XOf(x, x_.range); }
  double Y(double y) const {
    return top_ + kPanelHeight - (y - y_.low) / (y_.high - y_.low) * kPanelHeight;
  }
  std::string Point(double x, double y) const {
    return Coordinate(X(x)) + " " + Coordinate(Y(y)) + " ";
  }

  std::string Axes() const {
    const double bottom = top_ + kPanelHeight;
    const Ticks y_ticks = panel_.shape == PlotShape::kCounts ? Ticks::kWhole : Ticks::kAny;
    std::string out;
    for (const double tick : AxisTicks(y_.low, y_.high, y_ticks)) {
      out += "<path class=\"grid\" d=\"M" + Coordinate(kLeft) + " " + Coordinate(Y(tick)) + "H" +
             Coordinate(kWidth - kRight) + "\"/>\n";
      out += Text(kLeft - 8, Y(tick) + 4, " text-anchor=\"end\"", FormatNumber(tick));
    }
    for (const double tick : AxisTicks(x_.range.low, x_.range.high, x_.ticks)) {
      out += "<path class=\"grid\" d=\"M" + Coordinate(X(tick)) + " " + Coordinate(top_) + "V" +
             Coordinate(bottom) + "\"/>\n";
      out += Text(X(tick), bottom + 16, " text-anchor=\"middle\"", FormatNumber(tick));
    }
    return out + "<rect class=\"frame\"" + Attribute("x", kLeft) + Attribute("y", top_) +
           Attribute("width", kWidth - kLeft - kRight) + Attribute("height", kPanelHeight) + "/>\n";
  }

  // Names above the panel, to the right, or on a line of their own.
  std::string Legend() const {
    std::string out;
    double x = LegendOnItsOwnLine(panel_) ? kLeft : kWidth - kRight - LegendWidth(panel_);
    const std::size_t count =
        panel_.series.size() < 2 ? 0 : std::min(panel_.series.size(), kSeriesMax);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = Cut(panel_.series[i].name, kLegendNameMax);
      out += "<path class=\"line first\" stroke=\"" + std::string(kColours[i]) + "\" d=\"M" +
             Coordinate(x) + " " + Coordinate(top_ - 12) + "h12\"/>\n";
      out += Text(x + 16, top_ - 8, "", name);
      x += 26 + kCharacter * static_cast<double>(CharacterCount(name));
    }
    return out;
  }

  // Through (x_last, y) of each bucket: straight, or held since the one before.
  std::string Forward(const std::vector<Curve::Bucket>& buckets, double Curve::Bucket::*y) const {
    const bool steps = panel_.shape == PlotShape::kCounts;
    const double from = steps ? BeginOf(buckets) : buckets.front().x_last;
    std::string out = Point(from, buckets.front().*y);
    for (std::size_t i = steps ? 0 : 1; i < buckets.size(); ++i) {
      out += steps ? "V" + Coordinate(Y(buckets[i].*y)) + "H" + Coordinate(X(buckets[i].x_last))
                   : Point(buckets[i].x_last, buckets[i].*y);
    }
    return out;
  }

  std::string Backward(const std::vector<Curve::Bucket>& buckets, double Curve::Bucket::*y) const {
    const bool steps = panel_.shape == PlotShape::kCounts;
    std::string out = "L" + Point(buckets.back().x_last, buckets.back().*y);
    for (std::size_t i = buckets.size() - 1; i-- > 0;) {
      out += steps ? "H" + Coordinate(X(buckets[i].x_last)) + "V" + Coordinate(Y(buckets[i].*y))
                   : Point(buckets[i].x_last, buckets[i].*y);
    }
    return steps ? out + "H" + Coordinate(X(BeginOf(buckets))) : out;
  }

  // Where the first point's step begins: with the axis, unless the curve begins later.
  double BeginOf(const std::vector<Curve::Bucket>& buckets) const {
    const double first = buckets.front().x_first;
    return first == x_.first ? x_.range.low : first;
  }

  std::string Line(std::size_t index) const {
    const std::vector<Curve::Bucket>& buckets = panel_.series[index].curve.buckets();
    if (buckets.empty()) return "";
    const std::string colour = kColours[index];
    if (buckets.size() == 1) {
      return "<circle r=\"3\" fill=\"" + colour + "\"" + Attribute("cx", X(buckets[0].x_last)) +
             Attribute("cy", Y(buckets[0].last)) + "/>\n";
    }
    std::string out;
    if (std::ranges::any_of(buckets, [](const auto& one) { return one.low < one.high; })) {
      out = "<path class=\"band\" fill=\"" + colour + "\" d=\"M" +
            Forward(buckets, &Curve::Bucket::high) + Backward(buckets, &Curve::Bucket::low) +
            "Z\"/>\n";
    }
    return out + "<path class=\"line" + (index == 0 ? " first" : "") + "\" stroke=\"" + colour +
           "\" d=\"M" + Forward(buckets, &Curve::Bucket::last) + "\"/>\n";
  }

  const PlotPanel& panel_;
  const XAxis x_;
  const Range y_;
  const double top_;
};

// A line in each panel, and a wide one to point at.
std::string MarkLine(double at, const std::vector<double>& tops, const std::string& title) {
  std::string path;
  for (const double top : tops) {
    path += "M" + Coordinate(at) + " " + Coordinate(top) + "v" + Coordinate(kPanelHeight);
  }
  return "<g class=\"mark\"><title>" + title + "</title><path class=\"near\" d=\"" + path +
         "\"/><path class=\"seen\" d=\"" + path + "\"/></g>\n";
}

void DrawMarks(const Plot& plot, const Range& x, Drawing* drawing) {
  const double column = plot.marks.size() > kMarksApart ? kCrowdedColumn : kMarkColumn;
  const std::vector<double> tops = TopsOf(plot);
  for (std::size_t i = 0; i < plot.marks.size();) {
    if (!(plot.marks[i].x >= x.low && plot.marks[i].x <= x.high)) {
      ++i;
      continue;
    }
    const double at = XOf(plot.marks[i].x, x);
    std::string title;
    const std::size_t begin = i;
    for (; i < plot.marks.size() && plot.marks[i].x <= x.high; ++i) {
      if (XOf(plot.marks[i].x, x) >= at + column) break;
      const std::string text = Escaped(Cut(plot.marks[i].text, kMarkTextMax));
      if (i > begin && title.size() + text.size() > kMarkTitleMax) {
        ++drawing->marks_without_text;
      } else {
        title += (i > begin ? "\n" : "") + text;
      }
    }
    drawing->svg += MarkLine(at, tops, title);
  }
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

std::vector<double> AxisTicks(double low, double high, Ticks kind) {
  const double rough = (high - low) / 8;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  if (kind == Ticks::kWhole) step = std::max(1.0, step);
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

Drawing DrawSvg(const Plot& plot) {
  const std::vector<double> tops = TopsOf(plot);
  const double bottom = tops.empty() ? kTop : tops.back() + kPanelHeight;
  const double height = bottom + kBottom;
  const XAxis x = XAxisOf(plot);
  Drawing drawing;
  std::string& out = drawing.svg;
  out = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " +
        Coordinate(kWidth) + " " + Coordinate(height) + "\"" + Attribute("width", kWidth) +
        Attribute("height", height) + ">\n<title>" + Escaped(plot.title) + "</title>\n<style>\n" +
        kStyle + "</style>\n" + "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";
  out += Text(kLeft, 22, " class=\"title\"", plot.title);
  for (std::size_t i = 0; i < tops.size(); ++i) {
    out += PanelDrawing(plot.panels[i], x, tops[i]).Draw();
  }
  DrawMarks(plot, x.range, &drawing);
  out += Text((kLeft + kWidth - kRight) / 2, bottom + 36, " text-anchor=\"middle\"", plot.x_title);
  out += "</svg>\n";
  return drawing;
}

}  // namespace tactus::client
