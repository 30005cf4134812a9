// The loss over time as a CSV file, written and read.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/outcome.h"
#include "simulator/power_law.h"

namespace tactus::client {

inline constexpr std::size_t kCurveBytesMax = std::size_t{64} << 20;

// Where the curve stands that a written cluster file names.
std::string CurvePathBeside(const std::string& cluster_path);

// One line a round, after the line "seconds,round,samples,loss,loss_smoothed,plan". Numbers read
// back as they were; a loss that is not finite is nan, inf or -inf.
std::string CurveText(const std::vector<simulator::CurvePoint>& curve);

// The columns `samples` and `loss` of such a text; others are not looked at. Points come in the
// order of the lines, which end as on Unix or on Windows. Errors: InvalidArgument, "line 3: ...",
// when a column is missing or given twice, there is no point, a number is wrong or not finite, or
// samples do not rise.
absl::StatusOr<std::vector<simulator::LossPoint>> ParseCurve(std::string_view text);

// The same for a file of at most kCurveBytesMax. Errors begin with the path; also those of opening
// and reading it.
absl::StatusOr<std::vector<simulator::LossPoint>> ReadCurveFile(const std::string& path);

}  // namespace tactus::client
