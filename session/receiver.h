// Which of the messages that come from the other end of a session are handled.

#pragma once

#include <cstdint>
#include <optional>

namespace tactus::session {

// Each message is handled once and in the order of the numbers, over as many streams as it takes: a
// new stream repeats what its sender has no word of. One thread.
class Receiver {
 public:
  enum class Verdict {
    kHandle,
    kKnown,  // or not numbered: there is nothing to handle
    kGap,    // something before it is missing: no end of this session sends that
  };

  Verdict Take(std::uint64_t sequence) {
    if (sequence == 0 || (received_ && sequence <= *received_)) return Verdict::kKnown;
    if (received_ && sequence != *received_ + 1) return Verdict::kGap;
    received_ = sequence;
    return Verdict::kHandle;
  }

  // The highest number taken; 0: none, and any first one will do, for the sender may have begun
  // with another process at this end.
  std::uint64_t received() const { return received_.value_or(0); }

 private:
  std::optional<std::uint64_t> received_{};
};

}  // namespace tactus::session
