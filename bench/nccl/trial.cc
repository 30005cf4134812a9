#include "bench/nccl/trial.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"

namespace tactus::bench::nccl {
namespace {

using cuda::nccl::Aborted;
using cuda::nccl::Standing;
using cuda::nccl::State;

void RequireCuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw Unexpected{std::string(call) + ": " + cudaGetErrorString(error)};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Trial::Trial(const Setting& setting, std::size_t floats) : setting_(setting), length_(floats) {
  Require(cuda::UseDevice(setting.place.device));
  cuda::OpenedStream stream = cuda::OpenStream();
  Require(stream.reason);
  cuda::OpenedEvent done = cuda::OpenEvent();
  Require(done.reason);
  void* memory = nullptr;
  RequireCuda(cudaMalloc(&memory, floats * sizeof(float)), "cudaMalloc");
  floats_ = static_cast<float*>(memory);
  stream_ = std::move(stream.stream);
  done_ = std::move(done.event);
  Write(std::vector<float>(floats));
}

Trial::~Trial() {
  const bool hangs = communicator_ != nullptr &&
                     communicator_->Abort(setting_.abort_limit, nullptr) == Aborted::kHangs;
  // Then what the communicator has queued may still write there, and to free it would hang, too.
  if (!hangs) cudaFree(floats_);
}

void Trial::Meet() {
  cuda::nccl::BegunCommunicator begun = cuda::nccl::Communicator::Begin(setting_.place);
  Require(begun.reason);
  communicator_ = std::move(begun.communicator);
  Require(cuda::nccl::Await(*communicator_, PatienceFor("the group has not met")));
}

Trial::Took Trial::Run(const std::string& what, const Call& call) {
  const Instant begun = setting_.now();
  Standing standing = call(*communicator_, stream_.get());
  if (standing.state == State::kInProgress) {
    standing = cuda::nccl::Await(*communicator_, PatienceFor(what + " was not queued"));
  }
  Require(standing);
  Require(cuda::Record(done_.get(), stream_.get()));
  const double queued_us = SinceUs(begun);
  AwaitEvent(what, begun);
  return {.queued_us = queued_us, .done_us = SinceUs(begun)};
}

Trial::Took Trial::Repeat(const std::string& what, const Call& call, std::size_t times) {
  TACTUS_CHECK(times >= 1);
  std::vector<double> queued;
  std::vector<double> done;
  for (std::size_t i = 0; i < times; ++i) {
    const Took took = Run(what, call);
    queued.push_back(took.queued_us);
    done.push_back(took.done_us);
  }
  return {.queued_us = Median(std::move(queued)), .done_us = Median(std::move(done))};
}

double Trial::Leave() {
  const Instant begun = setting_.now();
  const Aborted aborted = communicator_->Leave(PatienceFor("what was queued has not arrived"),
                                               setting_.abort_limit, nullptr);
  if (aborted == Aborted::kHangs) throw Unexpected{"the end of the communicator hangs"};
  return SinceUs(begun);
}

double Trial::Abort() {
  const Instant begun = setting_.now();
  if (communicator_->Abort(setting_.abort_limit, nullptr) == Aborted::kHangs) {
    throw Unexpected{"the abort hangs"};
  }
  return SinceUs(begun);
}

// On the member's own stream: another member of the process may wait for this one on its own.
void Trial::Write(const std::vector<float>& values) {
  TACTUS_CHECK(values.size() <= length_);
  RequireCuda(cudaMemcpyAsync(floats_, values.data(), values.size() * sizeof(float),
                              cudaMemcpyHostToDevice, stream_.get()),
              "cudaMemcpyAsync");
  RequireCuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
}

std::vector<float> Trial::Read(std::size_t n) const {
  TACTUS_CHECK(n <= length_);
  std::vector<float> values(n);
  RequireCuda(cudaMemcpyAsync(values.data(), floats_, n * sizeof(float), cudaMemcpyDeviceToHost,
                              stream_.get()),
              "cudaMemcpyAsync");
  RequireCuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  return values;
}

double Trial::SinceUs(Instant begun) const { return 1e6 * ToSeconds(setting_.now() - begun); }

cuda::nccl::Patience Trial::PatienceFor(const std::string& what) const {
  return {.limit = setting_.limit, .now = setting_.now, .what = what};
}

void Trial::Require(const Standing& standing) const {
  if (standing.state == State::kFailed) throw Unexpected{standing.reason};
}

void Trial::Require(const std::string& reason) const {
  if (!reason.empty()) throw Unexpected{reason};
}

// Asks again and again, as microseconds are measured, and asks NCCL too, whose error the event
// would never tell.
void Trial::AwaitEvent(const std::string& what, Instant begun) {
  while (true) {
    const cuda::EventState state = cuda::Query(done_.get());
    if (state.reached == cuda::Reached::kYes) return;
    Require(state.reason);
    Require(communicator_->Poll());
    if (setting_.now() - begun >= setting_.limit) {
      throw Unexpected{what + ": the device has not done it within " +
                       std::to_string(ToSeconds(setting_.limit)) + " s"};
    }
  }
}

}  // namespace tactus::bench::nccl
