// Line plots stacked over one axis, as SVG. Pure: numbers in, text out.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tactus::client {

// A curve of any number of points in bounded memory: neighbours are joined as more come, and of
// those that are joined the lowest and the highest stay. Points come with growing x.
class Curve {
 public:
  static constexpr std::size_t kBucketsMax = 1000;

  // Points joined into one.
  struct Bucket {
    double x_first = 0;
    double x_last = 0;
    double low = 0;
    double high = 0;
    double last = 0;  // the y of x_last
  };

  // One that is not finite is left out.
  void Add(double x, double y);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool empty() const { return buckets_.empty(); }

 private:
  std::vector<Bucket> buckets_;      // at most kBucketsMax
  std::size_t points_in_last_ = 0;   // of the newest bucket
  std::size_t points_a_bucket_ = 1;  // a power of two
};

// What is drawn.
struct PlotSeries {
  std::string name{};
  Curve curve{};
};

enum class PlotShape {
  kLine,    // from point to point
  kCounts,  // whole numbers, each from the point before to its own: steps
};

struct PlotPanel {
  std::string title{};
  PlotShape shape = PlotShape::kLine;
  std::vector<PlotSeries> series{};  // the first is drawn thickest and last; at most 9 are drawn
};

// A vertical line in every panel, with a text that shows when pointed at.
struct PlotMark {
  double x = 0;
  std::string text{};
};

struct Plot {
  std::string title{};
  std::string x_title{};
  std::optional<double> x_begin{};  // of the axis; none: at the first point
  bool x_whole = false;             // the axis counts
  std::vector<PlotPanel> panels{};
  std::vector<PlotMark> marks{};  // by x
};

struct Drawing {
  std::string svg{};
  // Marks on the axis whose texts had no room: of those that cannot be told apart by eye, which
  // share a line, only the first ones' texts are there.
  std::size_t marks_without_text = 0;
};

// A document of its own, below 2 MB, in the colours that its viewer prefers, dark or light. Where a
// curve's points were joined, a band shows from the lowest to the highest.
Drawing DrawSvg(const Plot& plot);

// Where an axis from `low` to `high` is labelled: 3 to 9 multiples of 1, 2 or 5 times a power of
// ten; of an axis of whole numbers those alone, which may be fewer. Requires: finite, low < high.
enum class Ticks { kAny, kWhole };
std::vector<double> AxisTicks(double low, double high, Ticks ticks = Ticks::kAny);

}  // namespace tactus::client
