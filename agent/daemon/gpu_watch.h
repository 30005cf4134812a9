// The host's GPUs, read again and again beside the control thread, because a driver may take its
// time or never answer.

#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/time.h"
#include "cuda/nvml.h"
#include "runtime/control_thread.h"

namespace tactus::agent {

// Reads all GPUs at once and then every kReadEvery looks. What was read is fetched at the next
// look, so nothing reaches into the control thread from outside. Where reading takes
// kSilentLooksMax looks the driver hangs: until it answers all GPUs have that fault, as nothing is
// known of any. Looks are counted and not the clock read, so that an agent that was itself stopped
// blames no driver. Used on the control thread alone.
class GpuWatch {
 public:
  struct Options {
    Duration look_interval = Seconds(1);
  };
  static constexpr int kReadEvery = 5;
  static constexpr int kSilentLooksMax = 60;

  // Called with a reading of each GPU, by position in gpus().
  using Took = std::function<void(const std::vector<cuda::GpuReading>& readings)>;

  GpuWatch(runtime::ControlThread& control, std::unique_ptr<cuda::GpuMonitor> monitor,
           const Options& options, Took took);

  // Waits for a reading that is under way, for a second at most.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  const std::vector<cuda::GpuIdentity>& gpus() const { return gpus_; }

 private:
  struct Reading {
    std::unique_ptr<cuda::GpuMonitor> monitor{};
    std::vector<cuda::GpuReading> gpus{};
  };

  void Look();
  void Read();
  void Miss();

  const Options options_;
  const Took took_;
  const std::vector<cuda::GpuIdentity> gpus_;
  // Shared with the thread that runs it, which a driver that hangs may keep longer than the watch.
  const std::shared_ptr<boost::asio::io_context> reader_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
  std::unique_ptr<cuda::GpuMonitor> monitor_;  // null while it is being read
  std::future<Reading> reading_;               // valid while it is
  std::vector<cuda::GpuReading> last_;         // as told
  int looks_ = 0;                              // since the last reading began
  runtime::Timer timer_;
};

}  // namespace tactus::agent
