#include "agent/daemon/log_pieces.h"

#include <algorithm>
#include <utility>

#include "runtime/utf8.h"

namespace tactus::agent {
namespace {

// True within a UTF-8 character.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Bytes at the end of `text` that may be the beginning of a character, at most three.
std::size_t CutBytes(std::string_view text) {
  for (std::size_t count = 1; count <= 3 && count <= text.size(); ++count) {
    const auto byte = static_cast<unsigned char>(text[text.size() - count]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > count ? count : 0;
  }
  return 0;
}

}  // namespace

void LogPieces::Append(std::string_view output) {
  std::string whole = std::exchange(cut_, {});
  whole += output;
  const std::size_t cut = CutBytes(whole);
  cut_ = whole.substr(whole.size() - cut);
  whole.resize(whole.size() - cut);
  // Most output is plain ASCII, and a worker may write a lot of it.
  const bool ascii = std::ranges::all_of(whole, [](const char c) { return c >= 0; });
  text_ += ascii ? whole : runtime::ToUtf8(whole);
  DropOldest();
}

// Leaves out lines, or a part of a line that is too long by itself. Down to half of the bound, so
// that a worker that writes on and on does not cost a move of all of it each time.
void LogPieces::DropOldest() {
  if (text_.size() <= kWaitingBytesMax) return;
  std::size_t drop = text_.size() - kWaitingBytesMax / 2;
  const std::size_t line_end = text_.find('\n', drop - 1);
  if (line_end != std::string::npos && line_end + 1 < text_.size()) drop = line_end + 1;
  while (drop < text_.size() && Continues(text_[drop])) ++drop;
  text_.erase(0, drop);
  offset_ += drop;
}

LogPieces::Piece LogPieces::TakePiece(std::size_t bytes_max) {
  const std::size_t most = std::min(bytes_max, kPieceBytesMax);
  std::size_t bytes = 0;
  if (most > 0 && !text_.empty()) {
    const std::size_t line_end = text_.rfind('\n', std::min(most, text_.size()) - 1);
    if (line_end != std::string::npos) bytes = line_end + 1;
  }
  if (bytes == 0 && most == kPieceBytesMax && text_.size() >= kPieceBytesMax) {
    bytes = kPieceBytesMax;
    while (bytes > 0 && bytes < text_.size() && Continues(text_[bytes])) --bytes;
  }
  Piece piece = {.offset = offset_, .text = text_.substr(0, bytes)};
  text_.erase(0, bytes);
  offset_ += bytes;
  return piece;
}

std::vector<LogPieces::Piece> LogPieces::Take(Instant now) {
  if (last_take_ != Instant::min()) {
    allowance_ += ToSeconds(now - last_take_) * static_cast<double>(kBytesPerSecond);
    allowance_ = std::min(allowance_, static_cast<double>(kBytesPerSecond));
  }
  last_take_ = now;
  std::vector<Piece> pieces;
  while (true) {
    Piece piece = TakePiece(static_cast<std::size_t>(allowance_));
    if (piece.text.empty()) return pieces;
    allowance_ -= static_cast<double>(piece.text.size());
    pieces.push_back(std::move(piece));
  }
}

std::vector<LogPieces::Piece> LogPieces::TakeAll() {
  text_ += runtime::ToUtf8(std::exchange(cut_, {}));
  std::vector<Piece> pieces;
  while (!text_.empty()) {
    Piece piece = TakePiece(kPieceBytesMax);
    if (piece.text.empty()) {
      piece = {.offset = offset_, .text = std::exchange(text_, {})};
      offset_ += piece.text.size();
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace tactus::agent
