#include "client/text/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/check.h"

namespace tactus::client {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

// Both lists by size, those of one kind of notation together.
constexpr std::array<Unit, 12> kRates = {{{"bit", 1 / 8.0},
                                          {"kbit", 1e3 / 8},
                                          {"mbit", 1e6 / 8},
                                          {"gbit", 1e9 / 8},
                                          {"tbit", 1e12 / 8},
                                          {"B/s", 1},
                                          {"KB/s", 1e3},
                                          {"MB/s", 1e6},
                                          {"GB/s", 1e9},
                                          {"KiB/s", 1024},
                                          {"MiB/s", 1024.0 * 1024},
                                          {"GiB/s", 1024.0 * 1024 * 1024}}};
constexpr std::size_t kBitRates = 5;
constexpr std::array<Unit, 7> kSizes = {{{"B", 1},
                                         {"KiB", 1024},
                                         {"MiB", 1024.0 * 1024},
                                         {"GiB", 1024.0 * 1024 * 1024},
                                         {"KB", 1e3},
                                         {"MB", 1e6},
                                         {"GB", 1e9}}};
constexpr std::size_t kBinarySizes = 4;

std::optional<double> Parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : units) {
    const double bytes = number * unit.bytes;
    if (name == unit.name && std::isfinite(bytes)) return bytes;
  }
  return std::nullopt;
}

// In the largest unit of at least 1 that loses nothing; the first one never does.
std::string Format(double bytes, std::span<const Unit> units) {
  TACTUS_CHECK(std::isfinite(bytes) && bytes >= 0);
  for (std::size_t i = units.size(); i-- > 1;) {
    const double number = bytes / units[i].bytes;
    if (number >= 1 && number * units[i].bytes == bytes) {
      return FormatNumber(number) + std::string(units[i].name);
    }
  }
  return FormatNumber(bytes / units[0].bytes) + std::string(units[0].name);
}

}  // namespace

std::optional<double> ParseRate(std::string_view text) { return Parse(text, kRates); }

std::string FormatBitRate(double bytes_per_second) {
  return Format(bytes_per_second, std::span(kRates).first(kBitRates));
}

std::optional<double> ParseSize(std::string_view text) {
  if (text == "0") return 0;
  return Parse(text, kSizes);
}

std::string FormatSize(double bytes) {
  return bytes == 0 ? "0" : Format(bytes, std::span(kSizes).first(kBinarySizes));
}

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "nan";  // without the sign, which says nothing
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  TACTUS_CHECK(written.ec == std::errc());
  return std::string(text.data(), written.ptr);
}

std::optional<double> ParseNumber(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace tactus::client
