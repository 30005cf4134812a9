// How many calls may move files at once, and how long each may stand still.

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/time.h"

namespace tactus::service {

enum class Transfer { kClientUpload, kAgentUpload, kDownload };

// Clients' uploads leave places for those of agents, which bring checkpoints and results. One
// thread.
class TransferSlots {
 public:
  // Other than the defaults in tests.
  struct Limits {
    std::size_t uploads = 256;         // of clients and agents
    std::size_t client_uploads = 192;  // of them; below `uploads`
    std::size_t downloads = 512;
    // The longest for which the coordinator waits for kStepBytes of an upload, or for a caller to
    // take the next chunk of a download.
    Duration stall = std::chrono::seconds(60);
  };
  static constexpr std::size_t kStepBytes = 64u << 10;

  // A call's place; given back when it is destroyed. Outlived by the slots.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), transfer_(other.transfer_) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot();

   private:
    friend class TransferSlots;
    Slot(TransferSlots& slots, Transfer transfer) : slots_(&slots), transfer_(transfer) {}

    TransferSlots* slots_;  // null: moved from
    Transfer transfer_;
  };

  // `changed` is told how many calls of a kind are under way whenever that is another number.
  using Changed = std::function<void(Transfer transfer, std::size_t calls)>;
  explicit TransferSlots(
      const Limits& limits, Changed changed = [](Transfer, std::size_t) {})
      : limits_(limits), changed_(std::move(changed)) {}

  const Limits& limits() const { return limits_; }

  // Errors: ResourceExhausted with the reason TOO_MANY_UPLOADS or TOO_MANY_DOWNLOADS and a time to
  // try again.
  absl::StatusOr<Slot> Take(Transfer transfer);

 private:
  void Enter(Transfer transfer) { changed_(transfer, ++Count(transfer)); }
  void Leave(Transfer transfer) { changed_(transfer, --Count(transfer)); }
  std::size_t& Count(Transfer transfer) { return counts_[static_cast<std::size_t>(transfer)]; }

  const Limits limits_;
  const Changed changed_;
  std::array<std::size_t, 3> counts_{};
};

}  // namespace tactus::service
