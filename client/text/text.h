// Numbers, times and tables as people read them. Every function is pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace tactus::client {

// "1,234,567".
std::string FormatCount(std::uint64_t count);

// "1 job", "2,000 jobs"; the noun's plural has an s.
std::string CountOf(std::uint64_t count, std::string_view noun);

// "once", "12 times".
std::string TimesText(std::uint64_t times);

// Three significant digits at least: "1,204", "86.4", "3.07". "-" for a value that is not finite.
std::string FormatRate(double per_second);

// "45.1 %" of 0.451; "-" for a value that is not finite.
std::string FormatPercent(double ratio);

// Four decimals; "nan" and "inf" as they are.
std::string FormatLoss(double loss);

// "0.8s", "12s", "2m 05s", "1h 02m", "3d 04h".
std::string FormatSpan(Duration span);

// "512 B", "1.2 MiB".
std::string FormatBytes(std::uint64_t bytes);

// "47,46,23,12".
template <typename Range>
std::string JoinNumbers(const Range& numbers) {
  std::string out;
  for (const auto number : numbers) {
    if (!out.empty()) out += ',';
    out += std::to_string(number);
  }
  return out;
}

// Padded with blanks to `width` columns, never cut. Widths count UTF-8 characters.
std::string PadLeft(std::string_view text, std::size_t width);
std::string PadRight(std::string_view text, std::size_t width);

// The first `width` characters of a line. Requires: no escape sequences in it.
std::string Cut(std::string_view line, std::size_t width);

// One line without control characters: text of others, which must not steer the terminal.
std::string Printable(std::string_view text);

// Columns by their widest cell, two blanks apart, no blanks at the ends of lines.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// The same with some cells in colour: `code(row, column)` is the escape code of a cell, such as
// "32", or empty for none.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows,
                        const std::function<std::string(std::size_t, std::size_t)>& code);

// The rows without the columns that there is no room for: those whose heads are `dispensable`, the
// first of them first, until a line of FormatTable has at most `columns` characters or none of them
// is left. Requires: rows of one length, of which the first is the head.
std::vector<std::vector<std::string>> FitTable(std::vector<std::vector<std::string>> rows,
                                               std::span<const std::string_view> dispensable,
                                               std::size_t columns);

// `text` in the colour of an escape code, such as "32"; as it is for an empty code.
std::string Coloured(const std::string& text, const std::string& code);

// A paragraph in lines of at most `columns`, broken at blanks but not before a per cent sign; a
// longer word has a line of its own.
std::string Wrap(std::string_view text, std::size_t columns);

// Each of the lines behind two blanks.
std::string Indented(const std::string& lines);

// The last part of a resource name: "demo-1" of "projects/default/jobs/demo-1".
std::string ShortName(const std::string& name);

}  // namespace tactus::client
