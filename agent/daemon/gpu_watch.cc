#include "agent/daemon/gpu_watch.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace tactus::agent {
namespace {

constexpr std::chrono::seconds kReadingLimit{1};
constexpr const char* kSilent = "the driver does not answer";

}  // namespace

GpuWatch::GpuWatch(runtime::ControlThread& control, std::unique_ptr<cuda::GpuMonitor> monitor,
                   const Options& options, Took took)
    : options_(options),
      took_(std::move(took)),
      gpus_(monitor->gpus()),
      reader_(std::make_shared<boost::asio::io_context>(1)),
      guard_(boost::asio::make_work_guard(*reader_)),
      thread_([reader = reader_] { reader->run(); }),
      monitor_(std::move(monitor)),
      last_(gpus_.size()),
      timer_(control) {
  Read();
}

GpuWatch::~GpuWatch() {
  timer_.Cancel();
  guard_.reset();  // the thread ends after what it reads
  if (!reading_.valid() || reading_.wait_for(kReadingLimit) == std::future_status::ready) {
    thread_.join();
  } else {
    // Nothing interrupts a driver that hangs, and the agent has to end all the same. What the
    // thread uses is its own.
    thread_.detach();
  }
}

void GpuWatch::Read() {
  looks_ = 0;
  std::promise<Reading> promise;
  reading_ = promise.get_future();
  boost::asio::post(*reader_,
                    [monitor = std::move(monitor_), promise = std::move(promise)]() mutable {
                      Reading reading;
                      for (std::size_t gpu = 0; gpu < monitor->gpus().size(); ++gpu) {
                        reading.gpus.push_back(monitor->Read(gpu));
                      }
                      reading.monitor = std::move(monitor);
                      promise.set_value(std::move(reading));
                    });
  timer_.After(options_.look_interval, [this] { Look(); });
}

void GpuWatch::Look() {
  ++looks_;
  if (reading_.valid() && reading_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    Reading reading = reading_.get();
    monitor_ = std::move(reading.monitor);
    last_ = std::move(reading.gpus);
    took_(last_);
  }
  if (reading_.valid() && looks_ == kSilentLooksMax) Miss();
  if (!reading_.valid() && looks_ >= kReadEvery) return Read();
  timer_.After(options_.look_interval, [this] { Look(); });
}

// What was read before is old, but for what is broken.
void GpuWatch::Miss() {
  for (cuda::GpuReading& reading : last_) {
    reading = {.fault = reading.fault.empty() ? kSilent : reading.fault};
  }
  took_(last_);
}

}  // namespace tactus::agent
