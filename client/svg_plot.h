// Line plots stacked over one axis, as SVG. Pure: numbers in, text out.

#pragma once

#include <cstddef>
#include <cstdint>
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

struct PlotPanel {
  std::string title{};
  std::vector<PlotSeries> series{};  // the first is drawn thickest and last; at most 9 are drawn
};

// A vertical line through all panels, with a text that shows when pointed at.
struct PlotMark {
  double x = 0;
  std::string text{};
};

struct Plot {
  std::string title{};
  std::string x_title{};
  std::vector<PlotPanel> panels{};
  std::vector<PlotMark> marks{};  // the first kPlotMarksMax are drawn
};
inline constexpr std::size_t kPlotMarksMax = 500;

// A document of its own, below 2 MB, in the colours that its viewer prefers, dark or light. Where a
// curve's points were joined, a band shows from the lowest to the highest.
std::string DrawSvg(const Plot& plot);

// Where an axis from `low` to `high` is labelled: 3 to 9 multiples of 1, 2 or 5 times a power of
// ten. Requires: finite, low < high.
std::vector<double> AxisTicks(double low, double high);

}  // namespace tactus::client
