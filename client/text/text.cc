#include "client/text/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <sstream>

namespace tactus::client {
namespace {

std::string Fixed(double value, int decimals) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string TwoDigits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

constexpr std::size_t kBetween = 2;  // blanks between the columns of a table

std::vector<std::size_t> WidthsOf(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  return widths;
}

std::size_t LineWidth(const std::vector<std::size_t>& widths) {
  if (widths.empty()) return 0;
  return std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
}

}  // namespace

std::string FormatCount(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string CountOf(std::uint64_t count, std::string_view noun) {
  return FormatCount(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string TimesText(std::uint64_t times) {
  return times == 1 ? "once" : FormatCount(times) + " times";
}

std::string FormatRate(double per_second) {
  if (!std::isfinite(per_second)) return "-";
  if (per_second >= 99.95 && per_second < 1e18) {
    return FormatCount(static_cast<std::uint64_t>(std::llround(per_second)));
  }
  return Fixed(per_second, per_second >= 9.995 ? 1 : 2);
}

std::string FormatPercent(double ratio) {
  return std::isfinite(ratio) ? Fixed(100 * ratio, 1) + " %" : "-";
}

std::string FormatLoss(double loss) { return Fixed(loss, 4); }

std::string FormatSpan(Duration span) {
  const double seconds = ToSeconds(span);
  if (seconds < 9.95) return Fixed(std::max(0.0, seconds), 1) + "s";
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return std::to_string(whole / 60) + "m " + TwoDigits(whole % 60) + "s";
  const std::int64_t minutes = whole / 60;
  if (minutes < 24 * 60) return std::to_string(minutes / 60) + "h " + TwoDigits(minutes % 60) + "m";
  return std::to_string(minutes / (24 * 60)) + "d " + TwoDigits(minutes / 60 % 24) + "h";
}

std::string FormatBytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Fixed(value, 1) + " " + kUnits[unit];
}

std::string PadLeft(std::string_view text, std::size_t width) {
  const std::size_t used = Width(text);
  return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string PadRight(std::string_view text, std::size_t width) {
  const std::size_t used = Width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string Cut(std::string_view line, std::size_t width) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (StartsCharacter(line[i]) && seen++ == width) return std::string(line.substr(0, i));
  }
  return std::string(line);
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

std::vector<std::vector<std::string>> FitTable(std::vector<std::vector<std::string>> rows,
                                               std::span<const std::string_view> dispensable,
                                               std::size_t columns) {
  for (const std::string_view head : dispensable) {
    if (LineWidth(WidthsOf(rows)) <= columns) break;
    const auto found = std::ranges::find(rows.front(), head);
    if (found == rows.front().end()) continue;
    const auto column = found - rows.front().begin();
    for (auto& row : rows) row.erase(row.begin() + column);
  }
  return rows;
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  return FormatTable(rows, [](std::size_t, std::size_t) { return std::string(); });
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows,
                        const std::function<std::string(std::size_t, std::size_t)>& code) {
  const std::vector<std::size_t> widths = WidthsOf(rows);
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string& cell = rows[r][i];
      line += Coloured(cell, code(r, i)) + std::string(widths[i] + kBetween - Width(cell), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Coloured(const std::string& text, const std::string& code) {
  return code.empty() || text.empty() ? text : "\x1b[" + code + "m" + text + "\x1b[0m";
}

std::string Wrap(std::string_view text, std::size_t columns) {
  std::string wrapped;
  std::size_t width = 0;  // of the last line
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    if (text.substr(end).starts_with(" %")) end = std::min(text.find(' ', end + 1), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (width > 0 && width + 1 + Width(word) > columns) {
      wrapped += '\n';
      width = 0;
    }
    if (width > 0) wrapped += ' ';
    width += Width(word) + (width > 0 ? 1 : 0);
    wrapped += word;
  }
  return wrapped + "\n";
}

std::string Indented(const std::string& lines) {
  std::istringstream in(lines);
  std::string text;
  for (std::string line; std::getline(in, line);) text += "  " + line + "\n";
  return text;
}

std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace tactus::client
