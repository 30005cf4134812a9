// Rates, sizes, durations and numbers as people write them and programs read them: "100mbit",
// "128KiB".

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus::client {

// A slower link would have a model's parameters under way for years. [bytes/s]
inline constexpr double kRateMin = 125;

// A rate in bytes a second. Units: bit, kbit, mbit, gbit, tbit a second (powers of 1000, as tc has
// them) and B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s. The number may have a fraction. Nothing
// when `text` is none, or not finite, or below 0.
std::optional<double> ParseRate(std::string_view text);

// The text of a rate in the largest bit unit that gives at least 1; ParseRate reads back the same
// number. Requires: finite, >= 0.
std::string FormatBitRate(double bytes_per_second);

// A size in bytes. Units: B, KB, MB, GB, KiB, MiB, GiB; 0 may stand alone. Nothing when `text` is
// none, or not finite, or below 0.
std::optional<double> ParseSize(std::string_view text);

// The text of a size in the largest binary unit that gives at least 1; ParseSize reads back the
// same number. Requires: finite, >= 0.
std::string FormatSize(double bytes);

// The shortest text that reads back as the same number; "nan", "inf" and "-inf" as they are.
std::string FormatNumber(double value);

// The number that all of `text` is, or nothing. Never one that is not finite.
std::optional<double> ParseNumber(std::string_view text);

}  // namespace tactus::client
