// From sample indices to a micro-batch in memory that the device can fetch from by itself.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "agent/data/dataset.h"
#include "agent/data/images.h"
#include "agent/model/model.h"
#include "base/time.h"
#include "cuda/device.h"
#include "threads/mutex.h"

namespace tactus::torchscript {

// Reads samples into memory that the device gave and that it keeps from call to call: one piece of
// it for what the device works on and, with a thread, others for what comes next. One thread calls.
class ExampleReader {
 public:
  struct Options {
    // Whether a thread reads what is expected while the caller does other things. Of no use where
    // device and host are one: the thread would take the cores that compute.
    bool ahead = false;
    std::size_t slots = 3;  // micro-batches in memory at most, >= 2; only one without `ahead`
    // How images are varied; nothing: they are not.
    std::optional<data::Augmentation> augmentation{};
  };
  // What suits the device.
  static Options For(const cuda::Device& device,
                     std::optional<data::Augmentation> augmentation = {}) {
    return {.ahead = device.stream() != nullptr, .augmentation = std::move(augmentation)};
  }

  // Data set and device outlive the reader.
  ExampleReader(const data::Dataset& dataset, cuda::Device& device);
  ExampleReader(const data::Dataset& dataset, cuda::Device& device, const Options& options);
  ExampleReader(const ExampleReader&) = delete;
  ExampleReader& operator=(const ExampleReader&) = delete;
  ~ExampleReader();

  const data::Dataset& dataset() const { return dataset_; }
  // The epoch of what is read and expected from here on, by which it is varied; 0 to begin with.
  void SetEpoch(std::uint64_t epoch) { epoch_ = epoch; }
  bool reads_ahead() const { return options_.ahead; }

  // The samples of the given indices. Valid until the next Read, by which all that takes them is
  // queued on the device: their memory is used again only when the device is through with that.
  // Waits for the thread when these are the ones it was told to expect; others are read here.
  model::Examples Read(std::span<const std::uint64_t> indices);

  // What the caller of Read spent there until the samples were in memory: reading them, or waiting
  // for the thread that does. Since the reader was made.
  Duration waited() const { return waited_; }

  // What will probably be read next, which the thread begins with. A wrong guess costs nothing but
  // its reading: one that comes while the thread is still at a former one is dropped. What goes
  // wrong with the data then shows in the Read that asks for it.
  void Expect(std::span<const std::uint64_t> indices);

 private:
  // Memory for a micro-batch.
  struct Slot {
    cuda::Array<std::byte> inputs{};
    cuda::Array<std::byte> targets{};
    std::size_t samples = 0;  // that there is room for
    std::vector<cuda::Array<std::byte>> outgrown{};
    std::vector<std::uint64_t> indices{};
    std::uint64_t epoch = 0;
    std::unique_ptr<cuda::Mark> mark{};  // behind what takes them
    std::uint64_t taken = 0;             // when it was returned last: a count of calls, 0: never
  };
  enum class Guess { kNone, kReading, kRead, kFailed };

  Slot* FindGuess(std::span<const std::uint64_t> indices);
  Slot& Prepare(std::span<const std::uint64_t> indices);
  std::span<std::byte> Inputs(Slot& slot) const;
  std::span<std::byte> Targets(Slot& slot) const;
  void ReadInto(Slot& slot) const;
  void ReadAhead();
  Slot* AwaitGuess();
  model::Examples Take(Slot& slot);

  const data::Dataset& dataset_;
  cuda::Device& device_;
  const Options options_;
  std::vector<Slot> slots_;
  std::uint64_t epoch_ = 0;
  Slot* current_ = nullptr;  // that Read returned last
  std::uint64_t reads_ = 0;
  Duration waited_{};

  // Between the caller and the thread. While the guess is kReading its slot is the thread's.
  threads::Mutex mutex_;
  threads::Condition changed_;
  Guess guess_ ABSL_GUARDED_BY(mutex_) = Guess::kNone;
  Slot* guessed_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tactus::torchscript
