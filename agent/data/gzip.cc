#include "agent/data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"

namespace tactus::data {
namespace {

constexpr std::size_t kFirstBytes = 65536;  // of output; doubled whenever it is full

// Decompresses member after member into one growing buffer.
class Inflater {
 public:
  Inflater(std::span<const std::uint8_t> input, std::size_t bytes_max)
      : input_(input), bytes_max_(bytes_max) {
    constexpr int kGzipOnly = 16;  // zlib's flag beside the window's size
    TACTUS_CHECK(inflateInit2(&stream_, kGzipOnly + MAX_WBITS) == Z_OK);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  absl::Status Run() {
    while (true) {
      if (stream_.avail_out == 0) Grow();
      Feed();
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (output_.size() - stream_.avail_out > bytes_max_) {
        return absl::InvalidArgumentError("is larger than " + std::to_string(bytes_max_) +
                                          " bytes when decompressed: store it without compression");
      }
      if (code == Z_STREAM_END) {
        if (Left() == 0) return absl::OkStatus();
        if (absl::Status next = NextMember(); !next.ok()) return next;
      } else if (code == Z_BUF_ERROR || (code == Z_OK && Left() == 0 && stream_.avail_out > 0)) {
        return absl::InvalidArgumentError("is cut short: its gzip data does not end");
      } else if (code != Z_OK) {
        return absl::InvalidArgumentError(std::string("has damaged gzip data: ") +
                                          (stream_.msg == nullptr ? "no reason" : stream_.msg));
      }
    }
  }

  std::vector<std::uint8_t> TakeOutput() {
    output_.resize(output_.size() - stream_.avail_out);
    output_.shrink_to_fit();
    return std::move(output_);
  }

 private:
  // Input that inflate has not used [bytes].
  std::size_t Left() const { return stream_.avail_in + (input_.size() - given_); }

  // zlib counts in 32 bits: gives it the next piece of the input when it has none.
  void Feed() {
    if (stream_.avail_in > 0) return;
    const std::size_t piece = std::min<std::size_t>(input_.size() - given_, kPieceBytesMax);
    stream_.next_in = const_cast<Bytef*>(input_.data() + given_);  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(piece);
    given_ += piece;
  }

  absl::Status NextMember() {
    const std::size_t position = input_.size() - Left();
    if (!IsGzip(input_.subspan(position))) {
      return absl::InvalidArgumentError("has " + std::to_string(Left()) +
                                        " bytes after the end of its gzip data");
    }
    TACTUS_CHECK(inflateReset(&stream_) == Z_OK);
    return absl::OkStatus();
  }

  // Doubles the output. It ends one byte over its bound, so that content of exactly that size is
  // told from larger content.
  void Grow() {
    const std::size_t used = output_.size();
    const std::size_t size = std::min(std::max(2 * used, kFirstBytes), bytes_max_ + 1);
    output_.resize(size);
    stream_.next_out = output_.data() + used;
    stream_.avail_out = static_cast<uInt>(size - used);
  }

  static constexpr std::size_t kPieceBytesMax = std::numeric_limits<uInt>::max();

  const std::span<const std::uint8_t> input_;
  const std::size_t bytes_max_;
  std::size_t given_ = 0;  // of input_, to zlib
  std::vector<std::uint8_t> output_;
  z_stream stream_ = {};
};

}  // namespace

bool IsGzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<std::vector<std::uint8_t>> Inflate(std::span<const std::uint8_t> bytes,
                                                  std::size_t bytes_max) {
  TACTUS_CHECK(bytes_max <= kInflatedBytesMax);
  Inflater inflater(bytes, bytes_max);
  if (absl::Status done = inflater.Run(); !done.ok()) return done;
  return inflater.TakeOutput();
}

}  // namespace tactus::data
