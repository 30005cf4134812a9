#include "client/ask/curve_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>

#include "absl/status/status.h"
#include "client/text/quantity.h"
#include "client/text/text.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

using simulator::LossPoint;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Without the ends of the lines, "\n" or "\r\n".
std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines = Split(text, '\n');
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return lines;
}

absl::Status Wrong(std::size_t line, const std::string& what) {
  return absl::InvalidArgumentError("line " + std::to_string(line) + ": " + what);
}

// Where the columns that are read stand.
struct Columns {
  std::size_t samples = 0;
  std::size_t loss = 0;
};

absl::StatusOr<Columns> FindColumns(std::string_view header) {
  const std::vector<std::string_view> names = Split(header, ',');
  Columns columns;
  for (const auto& [name, column] :
       {std::pair("samples", &columns.samples), std::pair("loss", &columns.loss)}) {
    const auto found = std::ranges::find(names, name);
    if (std::ranges::count(names, name) != 1) {
      return Wrong(1, "found " + std::string(found == names.end() ? "no" : "a second") +
                          " column \"" + name + "\", allowed is one each of samples and loss");
    }
    *column = static_cast<std::size_t>(found - names.begin());
  }
  return columns;
}

// The number in one cell of a line.
absl::StatusOr<double> Cell(const std::vector<std::string_view>& cells, std::size_t column,
                            std::size_t line) {
  if (column >= cells.size()) return Wrong(line, "too few columns");
  const std::optional<double> number = ParseNumber(cells[column]);
  if (number) return *number;
  return Wrong(line,
               "found \"" + Cut(Printable(cells[column]), 40) + "\", allowed is a finite number");
}

absl::StatusOr<LossPoint> ParsePoint(std::string_view text, const Columns& columns,
                                     std::size_t line) {
  const std::vector<std::string_view> cells = Split(text, ',');
  const absl::StatusOr<double> samples = Cell(cells, columns.samples, line);
  if (!samples.ok()) return samples.status();
  const absl::StatusOr<double> loss = Cell(cells, columns.loss, line);
  if (!loss.ok()) return loss.status();
  return LossPoint{.samples = *samples, .loss = *loss};
}

}  // namespace

std::string CurvePathBeside(const std::string& cluster_path) { return cluster_path + ".curve.csv"; }

std::string CurveText(const std::vector<simulator::CurvePoint>& curve) {
  std::string text = "seconds,round,samples,loss,loss_smoothed,plan\n";
  for (const simulator::CurvePoint& point : curve) {
    text += FormatNumber(point.seconds) + "," + std::to_string(point.round) + "," +
            std::to_string(point.samples) + "," + FormatNumber(point.loss) + "," +
            FormatNumber(point.loss_smoothed) + "," + std::to_string(point.plan_version) + "\n";
  }
  return text;
}

absl::StatusOr<std::vector<LossPoint>> ParseCurve(std::string_view text) {
  const std::vector<std::string_view> lines = Lines(text);
  const absl::StatusOr<Columns> columns = FindColumns(lines.front());
  if (!columns.ok()) return columns.status();
  std::vector<LossPoint> points;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty() && i + 1 == lines.size()) break;
    const absl::StatusOr<LossPoint> point = ParsePoint(lines[i], *columns, i + 1);
    if (!point.ok()) return point.status();
    const bool rises = points.empty() || point->samples > points.back().samples;
    if (point->samples < 0 || !rises) {
      return Wrong(i + 1, "found " + FormatNumber(point->samples) + " samples, allowed are " +
                              (rises ? "0 or more" : "more than on the line before"));
    }
    points.push_back(*point);
  }
  if (points.empty()) return Wrong(1, "no line with numbers follows");
  return points;
}

absl::StatusOr<std::vector<LossPoint>> ReadCurveFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(kCurveBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return runtime::FileError(errno, path, "cannot read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kCurveBytesMax) {
    return absl::InvalidArgumentError(path + ": larger than " + FormatBytes(kCurveBytesMax));
  }
  absl::StatusOr<std::vector<LossPoint>> points = ParseCurve(text);
  if (points.ok()) return points;
  return absl::InvalidArgumentError(path + ": " + std::string(points.status().message()));
}

}  // namespace tactus::client
