// What a simulation showed, for a person and for programs. Pure functions of the outcome: equal
// outcomes give equal bytes.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/outcome.h"

namespace tactus::client {

// How well a model fits the job that it was made from.
struct FitSummary {
  std::string job{};
  std::uint64_t rounds = 0;     // on record
  double transfer_seconds = 0;  // of a round, on average
  double recorded_samples_per_second = 0;
  double modelled_samples_per_second = 0;  // of the job as it was
};

struct ReportOptions {
  std::uint64_t seed = 1;
  // The time to this loss is reported; not given: to none.
  std::optional<double> loss{};
  // What the simulated cluster was fitted to, if to anything.
  std::optional<FitSummary> fit{};
};

// Rows of a table show so many workers, decisions and shares at most.
inline constexpr std::size_t kWorkerRowsMax = 32;
inline constexpr std::size_t kDecisionRowsMax = 20;
inline constexpr std::size_t kSharesShownMax = 8;

// For each job its figures, then its workers, then its decisions.
std::string ReportTable(const simulator::Outcome& outcome, const ReportOptions& options);

// One object with all that the table has, uncut, and the violations. Keys keep their order; a
// number that is not finite is null.
std::string ReportJson(const simulator::Outcome& outcome, const ReportOptions& options);

}  // namespace tactus::client
