// What the policies cost: microseconds a round of the planner with everything on auto, all reports
// folded in and the decision asked for, at 8, 64 and 512 workers; with a cheap transfer, for which
// rounds stay synchronous, and a dear one, for which they do not.
//
//   planner_round [rounds]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/rng.h"
#include "policies/planner.h"

namespace tactus::policies {
namespace {

constexpr int kRoundsDefault = 3000;

PlannerOptions Auto() {
  return {.batch_policy = "auto",
          .synchronization = {.policy = "auto"},
          .aggregation_policy = "auto",
          .learning_rate_policy = "auto",
          .encoding_policy = "auto"};
}

// A round of unequal workers with a tenth of noise, and a loss that falls slowly.
struct Round {
  std::uint64_t number = 0;
  double transfer_seconds = 0;
};

std::vector<Report> RoundOf(const Plan& plan, const Round& round, Rng& rng) {
  std::vector<Report> reports;
  double longest = 0;
  std::uint64_t samples = 0;
  for (std::size_t rank = 0; rank < plan.batch_sizes.size(); ++rank) {
    Report report{.round = round.number, .plan_version = plan.version};
    report.rank = static_cast<std::uint32_t>(rank);
    report.steps = plan.synchronization == Synchronization::kDelayed ? 1 : plan.period;
    report.samples = std::uint64_t{plan.batch_sizes[rank]} * report.steps;
    report.compute_seconds = static_cast<double>(report.samples) /
                             (100.0 + 50.0 * static_cast<double>(rank % 4)) *
                             (1 + 0.1 * rng.Normal());
    longest = std::max(longest, report.compute_seconds);
    samples += report.samples;
    reports.push_back(report);
  }
  const double batch = static_cast<double>(samples);
  for (Report& report : reports) {
    report.blocked_seconds = longest + round.transfer_seconds - report.compute_seconds;
    report.transfer_seconds = report.blocked_seconds;
    report.round_seconds = longest + round.transfer_seconds;
    report.samples_global = samples;
    report.loss_mean_global =
        1 + 10 / (10 + static_cast<double>(round.number)) + 0.01 * rng.Normal();
    report.contributors = static_cast<std::uint32_t>(reports.size());
    report.gradient_samples = batch;
    report.samples_gradient_norm2 = batch + 500.0 * static_cast<double>(reports.size());
    report.gradient_norm2_global = 1 + 500 / batch;
    report.orthogonality = 0.6 + 0.1 * rng.Normal();
    report.learning_rate = 0.1;
  }
  return reports;
}

struct Cost {
  double median_us = 0;
  double mean_us = 0;
  double p99_us = 0;
  double longest_us = 0;
  int plans = 0;
};

struct Setting {
  std::uint32_t workers = 8;
  double transfer_seconds = 0;
  int rounds = kRoundsDefault;
};

Cost Measure(const Setting& setting) {
  Planner planner(Auto());
  Plan plan = planner.Start({.members = setting.workers}).plan;
  Rng rng(1);
  Cost cost;
  std::vector<double> each;
  for (int round = 0; round < setting.rounds; ++round) {
    const std::vector<Report> reports =
        RoundOf(plan, {static_cast<std::uint64_t>(round), setting.transfer_seconds}, rng);
    const auto start = std::chrono::steady_clock::now();
    for (const Report& report : reports) planner.Observe(report);
    const std::optional<Revision> revision = planner.Decide(plan, {});
    planner.TakeMeasured();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    each.push_back(took.count());
    cost.mean_us += took.count() / setting.rounds;
    if (!revision) continue;
    plan = revision->plan;
    ++cost.plans;
  }
  std::sort(each.begin(), each.end());
  cost.median_us = each[each.size() / 2];
  cost.p99_us = each[each.size() * 99 / 100];
  cost.longest_us = each.back();
  return cost;
}

}  // namespace
}  // namespace tactus::policies

int main(int argc, char** argv) {
  using tactus::policies::Measure;
  const int wanted = argc > 1 ? std::atoi(argv[1]) : tactus::policies::kRoundsDefault;
  const int rounds = std::max(wanted, 1);
  std::printf("%8s %10s %10s %10s %10s %10s %6s\n", "workers", "transfer s", "median us", "mean us",
              "p99 us", "longest us", "plans");
  for (const double transfer : {0.001, 0.1}) {
    for (const std::uint32_t workers : {8u, 64u, 512u}) {
      const tactus::policies::Cost cost = Measure({workers, transfer, rounds});
      std::printf("%8u %10.3f %10.2f %10.2f %10.2f %10.2f %6d\n", workers, transfer, cost.median_us,
                  cost.mean_us, cost.p99_us, cost.longest_us, cost.plans);
    }
  }
}
