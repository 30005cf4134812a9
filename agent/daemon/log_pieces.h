// A worker's output on its way to the coordinator: whole lines, and not too much of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace tactus::agent {

// Takes output as it comes and hands it out as pieces of whole lines. What comes faster than
// kBytesPerSecond is left out, the oldest lines first, so that the last ones before a crash are
// there; the gap shows in the offsets. Offsets count bytes of the output as UTF-8. Pure; one
// thread.
class LogPieces {
 public:
  static constexpr std::size_t kPieceBytesMax = 64u << 10;
  static constexpr std::size_t kBytesPerSecond = 256u << 10;  // and at once, to begin with
  static constexpr std::size_t kWaitingBytesMax = 256u << 10;

  struct Piece {
    std::uint64_t offset = 0;  // of the first byte
    std::string text{};        // at most kPieceBytesMax
  };

  void Append(std::string_view output);

  // What may go now: whole lines, but for a line longer than a piece. `now` never goes back.
  std::vector<Piece> Take(Instant now);

  // All that is left, with a last line that is not ended, whatever the rate: after the worker's
  // end.
  std::vector<Piece> TakeAll();

  // Something waits that Take will hand out, now or later.
  bool waiting() const { return text_.find('\n') != std::string::npos || TooLongForALine(); }

 private:
  bool TooLongForALine() const { return text_.size() >= kPieceBytesMax; }
  // Takes the first piece of at most `bytes_max` off; an empty one when there is no whole line.
  Piece TakePiece(std::size_t bytes_max);
  void DropOldest();

  std::string cut_;                     // the first bytes of a character whose rest has not come
  std::string text_;                    // UTF-8
  std::uint64_t offset_ = 0;            // of text_
  double allowance_ = kBytesPerSecond;  // [bytes] that may go at once
  Instant last_take_ = Instant::min();
};

}  // namespace tactus::agent
