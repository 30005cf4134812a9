#include "tests/support/cuda_double/streams.h"

#include <algorithm>
#include <vector>

#include "tests/support/cuda_double/runtime.h"

namespace tactus::cuda_double {
namespace {

// In the order of their creation, so that a seed means the same in every process.
std::vector<CUstream_st*> Busy() {
  Runtime& runtime = TheRuntime();
  std::vector<CUstream_st*> busy;
  if (!runtime.legacy.queue.empty()) busy.push_back(&runtime.legacy);
  std::ranges::copy_if(runtime.streams, std::back_inserter(busy),
                       [](const CUstream_st* stream) { return !stream->queue.empty(); });
  return busy;
}

// All that can be done, on whichever stream.
bool DoAll(const std::vector<CUstream_st*>& streams) {
  bool progress = false;
  bool again = true;
  while (again) {
    again = false;
    for (CUstream_st* const stream : streams) {
      again = Advance(stream, [] { return false; }) || again;
    }
    progress = progress || again;
  }
  return progress;
}

// Some operations, of streams that chance names.
bool DoSome(const std::vector<CUstream_st*>& streams, Rng& rng) {
  constexpr std::uint64_t kOperationsMax = 3;  // a call: streams fall behind as well as catch up
  bool progress = false;
  for (std::uint64_t left = rng.Below(kOperationsMax + 1); left > 0; --left) {
    CUstream_st* const stream = streams[rng.Below(streams.size())];
    const std::size_t queued = stream->queue.size();
    progress = Advance(stream, [&] { return stream->queue.size() < queued; }) || progress;
  }
  return progress;
}

}  // namespace

bool Advance(CUstream_st* stream, const std::function<bool()>& enough) {
  if (stream->advancing) return false;
  stream->advancing = true;
  bool progress = false;
  const auto may_go_on = [&] {
    return !stream->queue.empty() && TheRuntime().broken == cudaSuccess && !enough();
  };
  while (may_go_on() && stream->queue.front()()) {
    stream->queue.pop_front();
    ++stream->done;
    progress = true;
  }
  stream->advancing = false;
  return progress;
}

void Proceed() {
  Runtime& runtime = TheRuntime();
  if (runtime.schedule == Schedule::kLazy) return;
  const std::vector<CUstream_st*> busy = Busy();
  if (busy.empty()) return;
  const bool progress =
      runtime.schedule == Schedule::kEager ? DoAll(busy) : DoSome(busy, runtime.rng);
  if (progress) runtime.changed.notify_all();
}

Operation Record(const std::shared_ptr<EventState>& event) {
  return [event, number = event->recorded, stream = event->stream] {
    event->reached = std::max(event->reached, number);
    event->at = stream->done;
    return true;
  };
}

Operation Wait(const std::shared_ptr<EventState>& event) {
  return [event, number = event->recorded, stream = event->stream] {
    const auto reached = [&] { return event->reached >= number; };
    if (!reached()) Advance(stream, reached);
    return reached();
  };
}

}  // namespace tactus::cuda_double
