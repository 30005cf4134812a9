// What a planner has learned, as bytes, and back: two archives over the lists of base/fields.h.
//
// A class whose state outlives its process names its members once, as a friend, and what holds
// between them:
//
//   friend void Fields(auto& archive, Of<LeastGain> auto& gain) { archive("value", gain.value_); }
//   friend bool Sound(const LeastGain& gain) { return gain.value_ > 0; }
//
// Values stand one after the other; the names are not written, only a sum over them, by which
// whoever has other fields knows that the bytes are not for him. So a history of hundreds of
// rounds is small, and a field that comes, goes or moves needs no number to be counted up. What was
// read is what was written, bit for bit, numbers that are not finite included.

#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace tactus::policies {

// A sum over texts, in their order: FNV-1a of 64 bits.
class TextSum {
 public:
  void Add(std::string_view text) {
    for (const char byte : text) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// A list of values of one type, which may get longer.
template <typename T>
concept Sequence = requires(T items, typename T::value_type item) {
  items.push_back(item);
  requires !std::same_as<T, std::string>;
};

class MemoryWriter {
 public:
  template <typename T>
  void operator()(const char* key, const T& value) {
    names_.Add({key, std::char_traits<char>::length(key) + 1});
    Write(value);
  }

  template <typename T>
  void Write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      Number(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      Number(static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63));
    } else if constexpr (std::is_integral_v<T>) {
      Number(value);
    } else if constexpr (std::is_same_v<T, double>) {
      Fixed(std::bit_cast<std::uint64_t>(value));
    } else {
      WriteCompound(value);
    }
  }

  // The sum of the names so far.
  void Seal() { Fixed(names_.value()); }

  // All of it, sealed, with a sum of its own.
  std::string Finish() {
    Seal();
    TextSum sum;
    sum.Add(bytes_);
    Fixed(sum.value());
    return std::move(bytes_);
  }

 private:
  // Seven bits a byte, the lowest first; the eighth: more follow.
  void Number(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  void Fixed(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
  }
  void WriteCompound(const std::string& text) {
    Number(text.size());
    bytes_ += text;
  }
  template <typename T>
  void WriteCompound(const std::optional<T>& value) {
    Write(value.has_value());
    if (value) Write(*value);
  }
  template <typename T, std::size_t kSize>
  void WriteCompound(const std::array<T, kSize>& items) {
    for (const T& item : items) Write(item);
  }
  template <typename Key, typename T>
  void WriteCompound(const std::map<Key, T>& items) {
    Number(items.size());
    for (const auto& [key, value] : items) {
      Write(key);
      Write(value);
    }
  }
  template <Sequence T>
  void WriteCompound(const T& items) {
    Number(items.size());
    for (const typename T::value_type& item : items) Write(item);
  }
  template <typename T>
  void WriteCompound(const T& record) {
    Fields(*this, record);
  }

  std::string bytes_;
  TextSum names_;
};

// Reads bytes that may be anything; its first failure sticks.
class MemoryReader {
 public:
  explicit MemoryReader(std::string_view bytes) : bytes_(bytes) {
    constexpr std::size_t kSum = sizeof(std::uint64_t);
    failed_ = bytes.size() < kSum;
    if (failed_) return;
    end_ = bytes.size() - kSum;
    TextSum sum;
    sum.Add(bytes.substr(0, end_));
    std::size_t at = end_;
    if (FixedAt(at) != sum.value()) Fail();
  }

  // False: something is not as it was written.
  bool ok() const { return !failed_; }

  template <typename T>
  void operator()(const char* key, T& value) {
    names_.Add({key, std::char_traits<char>::length(key) + 1});
    Read(value);
  }

  template <typename T>
  void Read(T& value) {
    if (failed_) return;
    if constexpr (std::is_enum_v<T>) {
      const std::uint64_t number = Number();
      if (number > static_cast<std::uint64_t>(kEnumMax<T>)) return Fail();
      value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, bool>) {
      const std::uint64_t number = Number();
      if (number > 1) return Fail();
      value = number == 1;
    } else if constexpr (std::is_integral_v<T>) {
      ReadInteger(value);
    } else if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(Fixed());
    } else {
      ReadCompound(value);
    }
  }

  // Fails where the names so far are not those that were sealed.
  void CheckSeal() {
    const std::uint64_t sum = names_.value();
    if (Fixed() != sum) Fail();
  }

  // True: everything was read, and is as it was written.
  bool Finish() {
    CheckSeal();
    if (at_ != end_) Fail();
    return ok();
  }

 private:
  void Fail() {
    failed_ = true;
    at_ = end_;
  }
  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    Fail();
    return 0;
  }
  std::uint64_t FixedAt(std::size_t& at) const {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at++])} << shift;
    }
    return value;
  }
  std::uint64_t Fixed() {
    if (end_ - at_ >= sizeof(std::uint64_t)) return FixedAt(at_);
    Fail();
    return 0;
  }
  // Of a text or list: each item takes a byte at least.
  std::size_t Length() {
    const std::uint64_t length = Number();
    if (length <= end_ - at_) return static_cast<std::size_t>(length);
    Fail();
    return 0;
  }
  template <typename T>
  void ReadInteger(T& value) {
    const std::uint64_t number = Number();
    if constexpr (std::is_signed_v<T>) {
      const auto wide = static_cast<std::int64_t>(number >> 1 ^ (~(number & 1) + 1));
      if (!std::in_range<T>(wide)) return Fail();
      value = static_cast<T>(wide);
    } else {
      if (!std::in_range<T>(number)) return Fail();
      value = static_cast<T>(number);
    }
  }
  void ReadCompound(std::string& text) {
    const std::size_t length = Length();
    text = bytes_.substr(at_, length);
    at_ += length;
  }
  template <typename T>
  void ReadCompound(std::optional<T>& value) {
    bool there = false;
    Read(there);
    value.reset();
    if (there) Read(value.emplace());
  }
  template <typename T, std::size_t kSize>
  void ReadCompound(std::array<T, kSize>& items) {
    for (T& item : items) Read(item);
  }
  template <typename Key, typename T>
  void ReadCompound(std::map<Key, T>& items) {
    items.clear();
    const std::size_t length = Length();
    for (std::size_t i = 0; i < length && !failed_; ++i) {
      Key key{};
      Read(key);
      Read(items[std::move(key)]);
    }
    if (items.size() != length) Fail();
  }
  template <Sequence T>
  void ReadCompound(T& items) {
    items.clear();
    const std::size_t length = Length();
    for (std::size_t i = 0; i < length && !failed_; ++i) {
      typename T::value_type item{};
      Read(item);
      items.push_back(std::move(item));
    }
  }
  template <typename T>
  void ReadCompound(T& record) {
    Fields(*this, record);
    if constexpr (requires { Sound(record); }) {
      if (!failed_ && !Sound(record)) Fail();
    }
  }

  const std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;  // of the values; the sum of the bytes follows
  TextSum names_;
  bool failed_ = false;
};

}  // namespace tactus::policies
