// What metrics cost the coordinator: one job of 100 workers that each report once a second, its
// round and its progress with them, and a scrape of all series, in processor time of this thread.
//
//   bench_telemetry [seconds of training]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/check.h"
#include "coordinator/telemetry/job_telemetry.h"
#include "metrics/coordinator_metrics.h"

namespace tactus::telemetry {
namespace {

constexpr std::uint32_t kWorkers = 100;
constexpr int kSecondsDefault = 2000;
constexpr double kScrapeInterval = 15;  // as deploy/prometheus/prometheus.yml

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

job::JobRecord SampleJob() {
  job::JobRecord record;
  record.id = JobId{1};
  record.name = "shakespeare-1";
  record.state = job::JobState::kRunning;
  record.generation = 1;
  record.progress.plan.version = 1;
  for (std::uint64_t rank = 0; rank < kWorkers; ++rank) {
    record.members.push_back(
        {.worker = WorkerId{rank + 1}, .node = "node-" + std::to_string(rank), .device = "cuda:0"});
    record.progress.plan.batch_sizes.push_back(64);
    record.progress.workers.push_back({.batch_size = 64, .samples_per_second = 400});
  }
  return record;
}

job::WorkerSaid SampleReport(std::uint64_t worker) {
  job::ReportMessage message;
  message.report = {.plan_version = 1,
                    .steps = 1,
                    .compute_seconds = 0.8,
                    .blocked_seconds = 0.15,
                    .transfer_seconds = 0.1,
                    .round_seconds = 0.95,
                    .bytes_sent = 100 << 20,
                    .gradient_norm2_global = 2,
                    .samples_global = 6400,
                    .contributors = kWorkers,
                    .samples_gradient_norm2 = 3 * 6400,
                    .gradient_samples = 6400};
  return {.worker = WorkerId{worker}, .message = message};
}

int Main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : kSecondsDefault;
  TACTUS_CHECK(seconds > 0);
  metrics::CoordinatorMetrics metrics("bench");
  JobTelemetry telemetry(metrics);
  const job::JobRecord record = SampleJob();
  telemetry.OnAction(job::PublishJob{record});
  for (std::uint32_t node = 0; node < kWorkers; ++node) {
    metrics.nodes().Set("node-" + std::to_string(node), {.busy = 1});
  }

  const double start = ProcessorSeconds();
  for (int second = 0; second < seconds; ++second) {
    for (std::uint64_t worker = 1; worker <= kWorkers; ++worker) {
      telemetry.OnEvent(SampleReport(worker), Instant{});
      telemetry.OnStep({}, Duration(0));
    }
    telemetry.OnStep({job::PersistRound{{.job = record.id, .seconds = 0.95}}}, Duration(0));
    telemetry.OnAction(job::PublishProgress{.job = record.id, .progress = record.progress});
  }
  const double setting = (ProcessorSeconds() - start) / seconds;

  std::size_t bytes = 0;
  const int scrapes = 200;
  const double before = ProcessorSeconds();
  for (int i = 0; i < scrapes; ++i) bytes += metrics::WriteText(*metrics.registry()).size();
  const double scrape = (ProcessorSeconds() - before) / scrapes;
  std::printf("setting  %.1f us a second, %.4f %% of a core\n", setting * 1e6, setting * 100);
  std::printf("scrape   %.2f ms, %zu bytes; every %.0f s %.4f %% of a core\n", scrape * 1e3,
              bytes / scrapes, kScrapeInterval, scrape / kScrapeInterval * 100);
  return 0;
}

}  // namespace
}  // namespace tactus::telemetry

int main(int argc, char** argv) { return tactus::telemetry::Main(argc, argv); }
