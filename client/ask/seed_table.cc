#include "client/ask/seed_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

using Json = nlohmann::ordered_json;

// A figure of a result that has a median: its names and how a person reads it.
struct Figure {
  const char* heading;
  const char* key;
  std::function<double(const SeedResult&)> value;
  std::function<std::string(double)> text;
  bool of_all_seeds = false;  // else of those that succeeded
};

std::string SecondsText(double seconds) {
  if (std::isinf(seconds)) return "not reached";
  return std::isfinite(seconds) ? FormatRate(seconds) + "s" : "-";
}

// A median of counts may end in a half.
std::string CountText(double count) {
  const bool whole = std::isfinite(count) && count == std::floor(count);
  return whole ? FormatCount(static_cast<std::uint64_t>(count)) : FormatRate(count);
}

const std::vector<Figure>& Figures() {
  static const std::vector<Figure> kFigures = {
      {"TO LOSS", "seconds_to_loss",
       [](const SeedResult& result) { return result.seconds_to_loss; }, SecondsText,
       /*of_all_seeds=*/true},
      {"TRAINING", "train_seconds", [](const SeedResult& result) { return result.train_seconds; },
       SecondsText},
      {"SAMPLES/S", "samples_per_second",
       [](const SeedResult& result) { return result.samples_per_second; }, FormatRate},
      {"UTILISATION", "utilisation", [](const SeedResult& result) { return result.utilisation; },
       FormatPercent},
      {"LOSS", "train_loss", [](const SeedResult& result) { return result.train_loss; },
       FormatLoss},
      {"ROUNDS", "rounds",
       [](const SeedResult& result) { return static_cast<double>(result.rounds); }, CountText},
      {"DECISIONS", "decisions",
       [](const SeedResult& result) { return static_cast<double>(result.decisions); }, CountText}};
  return kFigures;
}

bool Succeeded(const SeedResult& result) { return result.state == job::JobState::kSucceeded; }

Distribution DistributionOfFigure(const std::vector<SeedResult>& results, const Figure& figure) {
  std::vector<double> values;
  for (const SeedResult& result : results) {
    if (figure.of_all_seeds || Succeeded(result)) values.push_back(figure.value(result));
  }
  return DistributionOf(std::move(values));
}

double Quantile(const std::vector<double>& sorted, double q) {
  const double place = static_cast<double>(sorted.size() - 1) * q;
  const std::size_t below = static_cast<std::size_t>(place);
  const double rest = place - std::floor(place);
  if (rest == 0 || std::isinf(sorted[below])) return sorted[below];
  return sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

// What the medians are of.
struct Counts {
  std::uint64_t succeeded = 0;
  std::optional<std::uint64_t> reached{};  // the loss; nothing: not asked for
};

Counts CountsOf(const std::vector<SeedResult>& results) {
  Counts counts;
  for (const SeedResult& result : results) {
    if (Succeeded(result)) ++counts.succeeded;
    if (std::isnan(result.seconds_to_loss)) continue;
    counts.reached = counts.reached.value_or(0) + (std::isfinite(result.seconds_to_loss) ? 1 : 0);
  }
  return counts;
}

std::string CountsText(const std::vector<SeedResult>& results) {
  const Counts counts = CountsOf(results);
  const std::string all = FormatCount(results.size());
  std::string text;
  if (counts.reached) {
    text += "the loss was reached by " + FormatCount(*counts.reached) + " of " + all + " seeds\n";
  }
  if (counts.succeeded < results.size()) {
    text += std::string(counts.reached ? "the other medians" : "medians") + " are of the " +
            FormatCount(counts.succeeded) + " of " + all + " seeds whose job succeeded\n";
  }
  return text;
}

}  // namespace

SeedResult ResultOf(std::uint64_t seed, const simulator::Outcome& outcome,
                    std::optional<double> loss) {
  TACTUS_CHECK(!outcome.jobs.empty());
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const simulator::JobOutcome& job = outcome.jobs.front();
  return {.seed = seed,
          .state = job.state,
          .seconds_to_loss = loss ? SecondsToLoss(job, *loss).value_or(kNever)
                                  : std::numeric_limits<double>::quiet_NaN(),
          .train_seconds = job.train_seconds,
          .samples_per_second = job.samples_per_second,
          .utilisation = job.utilisation,
          .train_loss = job.train_loss,
          .rounds = job.rounds,
          .decisions = job.decisions_total,
          .violations = outcome.violations_total};
}

Distribution DistributionOf(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return {};
  std::ranges::sort(values);
  const double spread = Quantile(values, 0.75) - Quantile(values, 0.25);
  return {.median = Quantile(values, 0.5),
          .spread = std::isfinite(spread) ? spread : std::numeric_limits<double>::quiet_NaN()};
}

std::string SeedTable(const std::vector<SeedResult>& results) {
  std::vector<std::vector<std::string>> rows = {{"SEED", "STATE"}};
  for (const Figure& figure : Figures()) rows[0].emplace_back(figure.heading);
  rows[0].emplace_back("VIOLATIONS");
  for (const SeedResult& result : results) {
    rows.push_back({std::to_string(result.seed), NameOf(result.state)});
    for (const Figure& figure : Figures()) {
      rows.back().push_back(figure.text(figure.value(result)));
    }
    rows.back().push_back(FormatCount(result.violations));
  }
  std::vector<std::string> median = {"median", ""};
  std::vector<std::string> spread = {"spread", ""};
  for (const Figure& figure : Figures()) {
    const Distribution distribution = DistributionOfFigure(results, figure);
    median.push_back(figure.text(distribution.median));
    spread.push_back(figure.text(distribution.spread));
  }
  rows.push_back(median);
  rows.push_back(spread);
  return FormatTable(rows) + CountsText(results);
}

std::string SeedJson(const std::vector<SeedResult>& results) {
  Json runs = Json::array();
  for (const SeedResult& result : results) {
    Json run = {{"seed", result.seed}, {"state", NameOf(result.state)}};
    for (const Figure& figure : Figures()) run[figure.key] = figure.value(result);
    run["violations_total"] = result.violations;
    runs.push_back(run);
  }
  Json median = Json::object();
  Json spread = Json::object();
  for (const Figure& figure : Figures()) {
    const Distribution distribution = DistributionOfFigure(results, figure);
    median[figure.key] = distribution.median;
    spread[figure.key] = distribution.spread;
  }
  const Counts counts = CountsOf(results);
  const Json object = {{"seeds", runs},
                       {"succeeded", counts.succeeded},
                       {"reached", counts.reached ? Json(*counts.reached) : Json()},
                       {"median", median},
                       {"spread", spread}};
  return object.dump(2) + "\n";
}

}  // namespace tactus::client
