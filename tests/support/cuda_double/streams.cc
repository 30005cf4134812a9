#include "tests/support/cuda_double/streams.h"

#include <algorithm>

namespace tactus::cuda_double {

bool Advance(CUstream_st* stream) {
  if (stream->advancing) return false;
  stream->advancing = true;
  bool progress = false;
  while (!stream->queue.empty() && stream->queue.front()()) {
    stream->queue.pop_front();
    progress = true;
  }
  stream->advancing = false;
  return progress;
}

Operation Record(const std::shared_ptr<EventState>& event) {
  return [event, number = event->recorded] {
    event->reached = std::max(event->reached, number);
    return true;
  };
}

Operation Wait(const std::shared_ptr<EventState>& event) {
  return [event, number = event->recorded, stream = event->stream] {
    if (event->reached < number) Advance(stream);
    return event->reached >= number;
  };
}

}  // namespace tactus::cuda_double
