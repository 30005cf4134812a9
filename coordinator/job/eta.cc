#include "coordinator/job/eta.h"

#include <algorithm>

#include "base/time.h"

namespace tactus::job {
namespace {

void KeepNearest(double seconds, std::optional<double>& nearest) {
  seconds = std::max(seconds, 0.0);
  nearest = nearest ? std::min(*nearest, seconds) : seconds;
}

}  // namespace

std::optional<double> ForeseeEnd(const JobSettings& settings, const Progress& progress,
                                 double round_seconds) {
  std::optional<double> nearest;
  if (settings.stop_time) {
    KeepNearest(ToSeconds(*settings.stop_time) - progress.elapsed_seconds, nearest);
  }
  if (settings.stop_epochs && progress.epoch_samples > 0 && progress.samples_per_second > 0) {
    const double all =
        static_cast<double>(*settings.stop_epochs) * static_cast<double>(progress.epoch_samples);
    KeepNearest((all - static_cast<double>(progress.samples)) / progress.samples_per_second,
                nearest);
  }
  if (settings.stop_rounds && round_seconds > 0) {
    const double left =
        static_cast<double>(*settings.stop_rounds) - static_cast<double>(progress.rounds);
    KeepNearest(left * round_seconds, nearest);
  }
  return nearest;
}

}  // namespace tactus::job
