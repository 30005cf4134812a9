#include "agent/torchscript/reader.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "agent/worker/clock.h"
#include "base/check.h"

namespace tactus::torchscript {

ExampleReader::ExampleReader(const data::Dataset& dataset, cuda::Device& device)
    : ExampleReader(dataset, device, For(device)) {}

ExampleReader::ExampleReader(const data::Dataset& dataset, cuda::Device& device,
                             const Options& options)
    : dataset_(dataset), device_(device), options_(options) {
  TACTUS_CHECK(options.slots >= 2);
  slots_.resize(options.ahead ? options.slots : 1);
  for (Slot& slot : slots_) slot.mark = device.MakeMark();
  if (options.ahead) thread_ = std::thread([this] { ReadAhead(); });
}

ExampleReader::~ExampleReader() {
  if (thread_.joinable()) {
    {
      const threads::MutexLock lock(mutex_);
      ends_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  // The device may still be fetching.
  if (current_ != nullptr) current_->mark->Record();
  for (Slot& slot : slots_) slot.mark->Wait();
}

model::Examples ExampleReader::Read(std::span<const std::uint64_t> indices) {
  if (current_ != nullptr) current_->mark->Record();
  const Instant asked = worker::Now();
  Slot* const guessed = FindGuess(indices);
  waited_ += worker::Now() - asked;
  if (guessed != nullptr) return Take(*guessed);
  Slot& slot = Prepare(indices);  // may wait for the device, which is no wait for data
  const Instant prepared = worker::Now();
  ReadInto(slot);
  waited_ += worker::Now() - prepared;
  return Take(slot);
}

void ExampleReader::Expect(std::span<const std::uint64_t> indices) {
  if (!options_.ahead || indices.empty()) return;
  {
    const threads::MutexLock lock(mutex_);
    if (guess_ == Guess::kReading) return;
  }
  Slot& slot = Prepare(indices);
  {
    const threads::MutexLock lock(mutex_);
    guessed_ = &slot;
    guess_ = Guess::kReading;
  }
  changed_.NotifyAll();
}

// The slot that holds these because they were expected; null when they were not, or when they could
// not be read.
ExampleReader::Slot* ExampleReader::FindGuess(std::span<const std::uint64_t> indices) {
  const threads::MutexLock lock(mutex_);
  const bool expected = guess_ != Guess::kNone && guessed_->epoch == epoch_ &&
                        std::ranges::equal(guessed_->indices, indices);
  if (!expected) return nullptr;
  while (guess_ == Guess::kReading) changed_.Wait(mutex_);
  const bool was_read = guess_ == Guess::kRead;
  guess_ = Guess::kNone;
  return was_read ? guessed_ : nullptr;
}

// The slot whose samples were taken longest ago, with room for these; it may be that of a guess
// that came to nothing, but not the thread's.
ExampleReader::Slot& ExampleReader::Prepare(std::span<const std::uint64_t> indices) {
  const Slot* read_by_thread = nullptr;
  {
    const threads::MutexLock lock(mutex_);
    if (guess_ == Guess::kReading) {
      read_by_thread = guessed_;
    } else {
      guess_ = Guess::kNone;
    }
  }
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (&slot == read_by_thread) continue;
    if (oldest == nullptr || slot.taken < oldest->taken) oldest = &slot;
  }
  Slot& slot = *oldest;
  slot.mark->Wait();
  slot.indices.assign(indices.begin(), indices.end());
  slot.epoch = epoch_;
  if (slot.samples < indices.size()) {
    // With room for a batch that grows: such memory takes long to get. What is outgrown is kept, no
    // more than as much again: freeing it would wait for all that the device does, and so for the
    // members whom a collective waits for.
    slot.outgrown.push_back(std::move(slot.inputs));
    slot.outgrown.push_back(std::move(slot.targets));
    slot.samples = std::bit_ceil(indices.size());
    slot.inputs =
        device_.AllocateOnHost<std::byte>(data::PlacesOf(dataset_.inputs(), slot.samples).bytes);
    slot.targets =
        device_.AllocateOnHost<std::byte>(slot.samples * dataset_.targets().BytesPerSample());
  }
  return slot;
}

std::span<std::byte> ExampleReader::Inputs(Slot& slot) const {
  return slot.inputs.span().first(data::PlacesOf(dataset_.inputs(), slot.indices.size()).bytes);
}

std::span<std::byte> ExampleReader::Targets(Slot& slot) const {
  return slot.targets.span().first(slot.indices.size() * dataset_.targets().BytesPerSample());
}

void ExampleReader::ReadInto(Slot& slot) const {
  dataset_.Read(slot.indices, Inputs(slot), Targets(slot));
  if (options_.augmentation) options_.augmentation->Apply(slot.indices, slot.epoch, Inputs(slot));
}

// The thread.
void ExampleReader::ReadAhead() {
  while (Slot* const slot = AwaitGuess()) {
    Guess outcome = Guess::kRead;
    try {
      ReadInto(*slot);
    } catch (const std::exception&) {
      outcome = Guess::kFailed;  // Read tries again, and fails where somebody can be told
    }
    const threads::MutexLock lock(mutex_);
    guess_ = outcome;
    changed_.NotifyAll();
  }
}

// The slot that the thread is to read into; null when the reader ends.
ExampleReader::Slot* ExampleReader::AwaitGuess() {
  const threads::MutexLock lock(mutex_);
  while (!ends_ && guess_ != Guess::kReading) changed_.Wait(mutex_);
  return ends_ ? nullptr : guessed_;
}

model::Examples ExampleReader::Take(Slot& slot) {
  current_ = &slot;
  slot.taken = ++reads_;
  return {.count = slot.indices.size(),
          .input_specs = dataset_.inputs(),
          .target_spec = dataset_.targets(),
          .inputs = Inputs(slot),
          .targets = Targets(slot)};
}

}  // namespace tactus::torchscript
