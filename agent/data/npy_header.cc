#include "agent/data/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"

namespace tactus::data {
namespace {

constexpr std::array<std::uint8_t, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t kVersionBytes = 2;
constexpr std::size_t kNpyDimensionsMax = 32;  // NumPy's own

// Reads the dictionary from left to right. After a failure, `failed` is true and what was read
// means nothing.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  bool failed() const { return failed_; }
  std::size_t position() const { return position_; }  // [characters]

  // Skips white space, then takes `c` if it comes next.
  bool Take(char c) {
    SkipSpace();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void Expect(char c) {
    if (!Take(c)) failed_ = true;
  }

  // Takes white space to the end of the text; anything else fails.
  void ExpectEnd() {
    SkipSpace();
    if (position_ != text_.size()) failed_ = true;
  }

  // 'text' or "text", without escapes.
  std::string TakeString() {
    const char quote = Take('\'') ? '\'' : '"';
    if (quote == '"') Expect('"');
    const std::size_t end = text_.find(quote, position_);
    if (failed_ || end == std::string_view::npos) {
      failed_ = true;
      return "";
    }
    std::string value(text_.substr(position_, end - position_));
    position_ = end + 1;
    return value;
  }

  bool TakeBool() {
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!Take(word.front())) continue;
      failed_ = failed_ || !text_.substr(position_).starts_with(word.substr(1));
      position_ = std::min(position_ + word.size() - 1, text_.size());
      return value;
    }
    failed_ = true;
    return false;
  }

  // "(60000, 28)", "(3,)", "()"; Python 2 wrote "3L".
  std::vector<std::int64_t> TakeShape() {
    std::vector<std::int64_t> shape;
    Expect('(');
    while (!failed_ && !Take(')')) {
      shape.push_back(TakeInteger());
      if (shape.size() > kNpyDimensionsMax) failed_ = true;
      if (Take(',')) continue;
      Expect(')');
      break;
    }
    return shape;
  }

 private:
  void SkipSpace() {
    position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size());
  }

  std::int64_t TakeInteger() {
    SkipSpace();
    std::int64_t value = 0;
    const char* const begin = text_.data() + position_;
    const std::from_chars_result read = std::from_chars(begin, text_.data() + text_.size(), value);
    if (read.ec != std::errc() || value < 0) failed_ = true;
    position_ += static_cast<std::size_t>(read.ptr - begin);
    Take('L');
    return value;
  }

  const std::string_view text_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

absl::Status CutShort(std::size_t needed, std::size_t found) {
  return absl::InvalidArgumentError("is cut short: its header takes " + std::to_string(needed) +
                                    " bytes, " + std::to_string(found) + " are there");
}

// Reads the entries of the dictionary into a header.
class DictionaryParser {
 public:
  explicit DictionaryParser(std::string_view text) : reader_(text) {}

  // All of the header but `bytes`.
  absl::StatusOr<NpyHeader> Run() {
    reader_.Expect('{');
    while (!reader_.failed() && !reader_.Take('}')) {
      if (absl::Status entry = ParseEntry(); !entry.ok()) return entry;
      if (reader_.Take(',')) continue;
      reader_.Expect('}');
      break;
    }
    reader_.ExpectEnd();
    if (reader_.failed() || !has_descr_ || !has_order_ || !has_shape_) return Unreadable();
    return header_;
  }

 private:
  absl::Status ParseEntry() {
    const std::string key = reader_.TakeString();
    reader_.Expect(':');
    if (key == "descr" && reader_.Take('[')) {
      return absl::InvalidArgumentError("has records of several fields, not one array of numbers");
    }
    if (key == "descr") {
      header_.descr = reader_.TakeString();
      has_descr_ = true;
    } else if (key == "fortran_order") {
      header_.fortran_order = reader_.TakeBool();
      has_order_ = true;
    } else if (key == "shape") {
      header_.shape = reader_.TakeShape();
      has_shape_ = true;
    } else {
      return Unreadable();
    }
    return reader_.failed() ? Unreadable() : absl::OkStatus();
  }

  absl::Status Unreadable() const {
    return absl::InvalidArgumentError(
        "has a header that is not the dictionary NumPy writes (read up to character " +
        std::to_string(reader_.position()) + " of it)");
  }

  DictionaryReader reader_;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("is empty");
  const std::size_t magic_bytes = std::min(bytes.size(), kMagic.size());
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(magic_bytes),
                  kMagic.begin())) {
    return absl::InvalidArgumentError("is not a NumPy file: it does not begin with \\x93NUMPY");
  }
  constexpr std::size_t kFixedBytes = kMagic.size() + kVersionBytes;
  if (bytes.size() < kFixedBytes) return CutShort(kFixedBytes + 2, bytes.size());
  const std::uint8_t version = bytes[kMagic.size()];
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError("has NumPy format version " + std::to_string(version) +
                                      "; 1, 2 and 3 are read");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t text_offset = kFixedBytes + length_bytes;
  if (bytes.size() < text_offset) return CutShort(text_offset, bytes.size());
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i > 0; --i) {
    length = (length << 8) | bytes[kFixedBytes + i - 1];
  }
  if (bytes.size() - text_offset < length) return CutShort(text_offset + length, bytes.size());

  const std::span<const std::uint8_t> text = bytes.subspan(text_offset, length);
  absl::StatusOr<NpyHeader> header =
      DictionaryParser(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()))
          .Run();
  if (header.ok()) header->bytes = text_offset + length;
  return header;
}

}  // namespace tactus::data
