// One member at work: its communicator, a stream, a buffer, and how long each step took.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "bench/nccl/outcome.h"
#include "cuda/nccl.h"
#include "cuda/stream_events.h"

namespace tactus::bench::nccl {

// What a case may use, and for how long.
struct Setting {
  cuda::nccl::Place place{};
  Duration limit = Seconds(30);                    // > 0; of a step that waits for others
  Duration abort_limit = Seconds(30);              // > 0
  std::size_t long_floats = std::size_t{4} << 20;  // of an all-reduce that shows bandwidth
  std::function<Instant()> now{};
};

// A step that did not go as it must: the case has failed, for that reason.
struct Unexpected {
  std::string reason{};
};

// Throws Unexpected where a call fails or does not end within its limit; then the destructor
// aborts. One thread.
class Trial {
 public:
  // floats  of device memory, zero at first
  Trial(const Setting& setting, std::size_t floats);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Begins to meet the others and waits for them.
  void Meet();

  // A call of the communicator's, queued and waited for until the device has done it. Microseconds
  // until it was in the stream, and until it was done.
  using Call = std::function<cuda::nccl::Standing(cuda::nccl::Communicator&, cuda::Stream)>;
  struct Took {
    double queued_us = 0;
    double done_us = 0;
  };
  Took Run(const std::string& what, const Call& call);

  // The medians of so many runs. times >= 1
  Took Repeat(const std::string& what, const Call& call, std::size_t times);

  // Microseconds to the end of the communicator, one way or the other.
  double Leave();
  double Abort();

  void Write(const std::vector<float>& values);
  std::vector<float> Read(std::size_t n) const;  // of the buffer's first elements
  std::span<float> buffer(std::size_t n) { return {floats_, n}; }

 private:
  double SinceUs(Instant begun) const;
  cuda::nccl::Patience PatienceFor(const std::string& what) const;
  void Require(const cuda::nccl::Standing& standing) const;
  void Require(const std::string& reason) const;
  void AwaitEvent(const std::string& what, Instant begun);

  const Setting& setting_;
  const std::size_t length_;
  float* floats_ = nullptr;
  cuda::OwnedStream stream_ = nullptr;
  cuda::OwnedEvent done_ = nullptr;
  std::unique_ptr<cuda::nccl::Communicator> communicator_ = nullptr;
};

}  // namespace tactus::bench::nccl
