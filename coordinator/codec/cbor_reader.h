// The core's plain structs from CBOR bytes, straight: reads what cbor_writer.h writes, in
// whatever order the fields come, without a document in between. No exceptions.

#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/id.h"
#include "base/time.h"

namespace tactus::codec {

// Reads one item from the front of bytes that may be anything. Its first failure sticks.
class CborReader {
 public:
  explicit CborReader(std::string_view bytes) : bytes_(bytes) {}

  // Sets the fields of a struct from its map: one that the map lacks keeps its value, and what is
  // not a field is ignored.
  template <typename T>
  void Read(T& value) {
    if (failure_ != nullptr) return;
    if constexpr (std::is_enum_v<T>) {
      const std::int64_t number = Integer<std::int64_t>();
      if (number < 0 || number > kEnumMax<T>) return Fail("a value outside of its enum");
      value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, bool>) {
      const std::uint8_t byte = Byte();
      if (byte != kFalse && byte != kTrue) return Fail("not a truth value");
      value = byte == kTrue;
    } else if constexpr (std::is_integral_v<T>) {
      value = Integer<T>();
    } else {
      ReadCompound(value);
    }
  }

  // A field of the map that is being read.
  template <typename T>
  void operator()(const char* key, T& value) {
    for (std::size_t i = 0; i < map_.size(); ++i) {
      // Usually the fields come in the order in which they are asked for.
      if (++next_ >= map_.size()) next_ = 0;
      if (map_[next_].key != key) continue;
      at_ = map_[next_].at;
      return Read(value);
    }
  }

  // What is wrong; null: nothing. Bytes that are left over are wrong as well.
  const char* Finish() {
    if (failure_ == nullptr && at_ != bytes_.size()) Fail("bytes after the end");
    return failure_;
  }

 private:
  enum Major : std::uint8_t { kUnsigned = 0, kNegative = 1, kText = 3, kList = 4, kMap = 5 };
  static constexpr std::uint8_t kFalse = 0xf4, kTrue = 0xf5, kNull = 0xf6;
  static constexpr std::uint8_t kHalf = 0xf9, kFloat = 0xfa, kDouble = 0xfb;
  static constexpr int kDepthMax = 32;

  struct Head {
    std::uint8_t major = 7;
    std::uint64_t value = 0;
  };
  struct Entry {
    std::string_view key{};
    std::size_t at = 0;  // of the value
  };

  void Fail(const char* what) {
    if (failure_ == nullptr) failure_ = what;
    at_ = bytes_.size();
  }
  std::uint8_t Peek() const {
    return at_ < bytes_.size() ? static_cast<std::uint8_t>(bytes_[at_]) : 0xff;
  }
  std::uint8_t Byte() {
    if (at_ >= bytes_.size()) {
      Fail("too short");
      return 0;
    }
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t BigEndian(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | Byte();
    return value;
  }
  Head ReadHead() {
    const std::uint8_t byte = Byte();
    Head head{.major = static_cast<std::uint8_t>(byte >> 5), .value = byte & 31u};
    if (head.value < 24) return head;
    if (head.value > 27) Fail("a length that is not one");
    head.value = BigEndian(1 << (head.value & 3));
    return head;
  }
  // The length of a text, list or map: no more than there are bytes.
  std::size_t Length(Major major) {
    const Head head = ReadHead();
    if (head.major != major) Fail("a value of another kind");
    if (head.value > bytes_.size() - at_) Fail("too short");
    return failure_ == nullptr ? static_cast<std::size_t>(head.value) : 0;
  }
  std::string_view Text() {
    const std::size_t length = Length(kText);
    const std::string_view text = bytes_.substr(at_, length);
    at_ += length;
    return text;
  }
  template <typename T>
  T Integer() {
    const Head head = ReadHead();
    if (head.major == kUnsigned && std::in_range<T>(head.value)) return static_cast<T>(head.value);
    if (head.major == kNegative && std::is_signed_v<T>) {
      const auto number = static_cast<std::int64_t>(~head.value);
      if (number < 0 && std::in_range<T>(number)) return static_cast<T>(number);
    }
    Fail("not a number of its range");
    return T{};
  }

  // Passes over any item.
  void Skip(int depth) {
    if (depth > kDepthMax) return Fail("too deep");
    const Head head = ReadHead();
    const bool compound = head.major == kList || head.major == kMap;
    if (head.major == 7 || head.major <= kNegative) return;
    if (head.value > bytes_.size() - at_) return Fail("too short");
    if (!compound) {  // text or bytes
      at_ += static_cast<std::size_t>(head.value);
      return;
    }
    const std::uint64_t items = head.major == kMap ? 2 * head.value : head.value;
    for (std::uint64_t i = 0; i < items && failure_ == nullptr; ++i) Skip(depth + 1);
  }

  void ReadCompound(double& value) {
    const std::uint8_t kind = Peek();
    if (kind != kHalf && kind != kFloat && kind != kDouble) {
      value = static_cast<double>(Integer<std::int64_t>());
      return;
    }
    Byte();
    if (kind == kHalf) return ReadHalf(value);
    value = kind == kFloat ? double{std::bit_cast<float>(static_cast<std::uint32_t>(BigEndian(4)))}
                           : std::bit_cast<double>(BigEndian(8));
  }
  // A document has so the numbers that are not finite, and no others.
  void ReadHalf(double& value) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const std::uint64_t bits = BigEndian(2);
    if ((bits & 0x7c00) != 0x7c00) return Fail("not a number of its range");
    value = (bits & 0x3ff) != 0    ? std::numeric_limits<double>::quiet_NaN()
            : (bits & 0x8000) != 0 ? -kInfinity
                                   : kInfinity;
  }
  void ReadCompound(std::string& text) { text = Text(); }
  void ReadCompound(Duration& duration) { duration = Duration(Integer<Duration::rep>()); }
  void ReadCompound(Instant& time) { time = Instant(Duration(Integer<Duration::rep>())); }
  template <typename Tag>
  void ReadCompound(Id<Tag>& id) {
    id.value = Integer<std::uint64_t>();
  }
  template <typename T>
  void ReadCompound(std::optional<T>& value) {
    value.reset();
    if (Peek() == kNull) {
      ++at_;
    } else {
      Read(value.emplace());
    }
  }
  template <typename T>
  void ReadCompound(std::vector<T>& items) {
    items.clear();
    const std::size_t length = Length(kList);
    for (std::size_t i = 0; i < length && failure_ == nullptr; ++i) Read(items.emplace_back());
  }
  void ReadCompound(std::map<std::string, std::string>& items) {
    items.clear();
    const std::size_t length = Length(kMap);
    for (std::size_t i = 0; i < length && failure_ == nullptr; ++i) {
      std::string key(Text());
      items[std::move(key)] = Text();
    }
  }
  template <typename... Ts>
  void ReadCompound(std::variant<Ts...>& value) {
    ReadMap([&] {
      std::string kind;
      (*this)("kind", kind);
      if (!(ReadIf<Ts>(kind, value) || ...)) Fail("unknown kind");
    });
  }
  template <typename T, typename Variant>
  bool ReadIf(std::string_view kind, Variant& value) {
    if (kind != kKind<T>) return false;
    Fields(*this, value.template emplace<T>());
    return true;
  }
  template <typename T>
  void ReadCompound(T& record) {
    ReadMap([&] { Fields(*this, record); });
  }
  // `read` asks for the fields of the map that comes.
  template <typename Read>
  void ReadMap(const Read& read) {
    std::vector<Entry> entries;
    const std::size_t length = Length(kMap);
    for (std::size_t i = 0; i < length && failure_ == nullptr; ++i) {
      const std::string_view key = Text();
      entries.push_back({.key = key, .at = at_});
      Skip(0);
    }
    const std::size_t end = at_;
    std::swap(entries, map_);
    const std::size_t next = std::exchange(next_, map_.size());
    read();
    std::swap(entries, map_);
    next_ = next;
    at_ = failure_ == nullptr ? end : bytes_.size();
  }

  const std::string_view bytes_;
  std::size_t at_ = 0;
  std::vector<Entry> map_;  // of the struct that is being read
  std::size_t next_ = 0;    // the entry that was found last
  const char* failure_ = nullptr;
};

}  // namespace tactus::codec
