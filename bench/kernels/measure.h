// Times of queued work, by the device's own events.

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bench/kernels/operations.h"
#include "cuda/ops/stream.h"

namespace tactus::bench {

struct Spread {
  double min = 0;
  double median = 0;
  double max = 0;
};

// Of one number or more.
Spread SpreadOf(std::vector<double> values);

// One operation over several sets of buffers, one after the other, so that none is still in a cache
// when its turn comes again.
using Sets = std::vector<Call>;

// What one call took, of many in a row.
struct CallTime {
  double on_device_s = 0;  // between events around all of them
  double on_host_s = 0;    // to queue it
};

// So many calls, going round the sets, as one: captured as a graph, which replays them without the
// host and with no more between two of them than the device needs. What the calls have to prepare
// they have done before: they ran once. calls >= 1
Call Captured(const Sets& sets, std::size_t calls, cuda::Stream stream);

// A stopwatch on one stream. A call of CUDA's that fails stops the process. One thread.
class Stopwatch {
 public:
  explicit Stopwatch(cuda::Stream stream);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Queues so many calls, going round the sets, and waits for them. calls >= 1
  CallTime Time(const Sets& sets, std::size_t calls);

  // How many calls take about `seconds`: 1 to 300, so that they all fit into the driver's queue and
  // the host never waits. Warms up on the way.
  std::size_t CallsFor(const Sets& sets, double seconds);

  // Repeats the calls until they have taken `seconds` of the device, so that its clocks are up
  // before anything is measured.
  void WarmUp(const Sets& sets, double seconds);

 private:
  const cuda::Stream stream_;
  struct Events;
  const std::unique_ptr<Events> events_;
};

}  // namespace tactus::bench
