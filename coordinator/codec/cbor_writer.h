// The core's plain structs as CBOR bytes, without a document in between; base/fields.h says how a
// struct names its fields.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
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

// Counts the fields of a struct.
struct FieldCounter {
  std::uint64_t count = 0;

  template <typename T>
  void operator()(const char*, const T&) {
    ++count;
  }
};

class CborWriter {
 public:
  // Appends the map of a struct with one more entry, the number `encoding`. The field at `omitted`
  // is left out; null: none.
  template <typename T>
  void WriteRecord(const T& record, int encoding, const void* omitted) {
    omitted_ = omitted;
    FieldCounter counter;
    Fields(counter, record);
    Head(kMap, counter.count + (omitted == nullptr ? 1 : 0));
    Write(std::string_view("encoding"));
    Write(encoding);
    Fields(*this, record);
  }

  // The very bytes that nlohmann's library makes of such a document: the fields of each map sorted
  // by their keys.
  template <typename T>
  static std::string Document(const T& value) {
    CborWriter writer;
    writer.sorted_ = true;
    writer.Write(value);
    return writer.TakeBytes();
  }

  std::string TakeBytes() { return std::move(bytes_); }

  // A field.
  template <typename T>
  void operator()(const char* key, const T& value) {
    if (omitted_ != nullptr && omitted_ == static_cast<const void*>(&value)) return;
    if (sorted_) entries_.push_back({.key = key, .at = bytes_.size()});
    Write(std::string_view(key));
    Write(value);
  }

 private:
  struct Entry {
    std::string_view key{};
    std::size_t at = 0;
  };
  enum Major : std::uint8_t { kUnsigned = 0, kNegative = 1, kText = 3, kList = 4, kMap = 5 };
  static constexpr char kFalse = '\xf4', kTrue = '\xf5', kNull = '\xf6';
  static constexpr char kHalf = '\xf9', kFloat = '\xfa', kDouble = '\xfb';

  void BigEndian(std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      bytes_ += static_cast<char>((value >> shift) & 0xff);
    }
  }
  // What kind of item comes, with its number or length, in the shortest form.
  void Head(Major major, std::uint64_t value) {
    const int kind = major << 5;
    if (value < 24) {
      bytes_ += static_cast<char>(kind | static_cast<int>(value));
      return;
    }
    int power = 0;  // of the number's width in bytes
    while (power < 3 && (value >> (8 << power)) != 0) ++power;
    bytes_ += static_cast<char>(kind | (24 + power));
    BigEndian(value, 1 << power);
  }

  template <typename T>
  void Write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      Write(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      bytes_ += value ? kTrue : kFalse;
    } else if constexpr (std::is_integral_v<T>) {
      if (value < T{0}) {
        Head(kNegative, ~static_cast<std::uint64_t>(value));
      } else {
        Head(kUnsigned, static_cast<std::uint64_t>(value));
      }
    } else {
      WriteCompound(value);
    }
  }
  void WriteCompound(double value) {
    if (sorted_ && !std::isfinite(value)) {  // a document has these in two bytes
      bytes_ += kHalf;
      return BigEndian(std::isnan(value) ? 0x7e00 : value > 0 ? 0x7c00 : 0xfc00, 2);
    }
    const auto narrow = static_cast<float>(value);
    if (static_cast<double>(narrow) == value) {
      bytes_ += kFloat;
      BigEndian(std::bit_cast<std::uint32_t>(narrow), 4);
    } else {
      bytes_ += kDouble;
      BigEndian(std::bit_cast<std::uint64_t>(value), 8);
    }
  }
  void WriteCompound(std::string_view text) {
    Head(kText, text.size());
    bytes_ += text;
  }
  void WriteCompound(const std::string& text) { WriteCompound(std::string_view(text)); }
  void WriteCompound(const Duration& duration) { Write(std::int64_t{duration.count()}); }
  void WriteCompound(const Instant& time) { WriteCompound(time.time_since_epoch()); }
  template <typename Tag>
  void WriteCompound(const Id<Tag>& id) {
    Write(id.value);
  }
  template <typename T>
  void WriteCompound(const std::optional<T>& value) {
    if (value) {
      Write(*value);
    } else {
      bytes_ += kNull;
    }
  }
  template <typename T>
  void WriteCompound(const std::vector<T>& items) {
    Head(kList, items.size());
    for (const T& item : items) Write(item);
  }
  void WriteCompound(const std::map<std::string, std::string>& items) {
    Head(kMap, items.size());
    for (const auto& [key, value] : items) {
      Write(key);
      Write(value);
    }
  }
  template <typename... Ts>
  void WriteCompound(const std::variant<Ts...>& value) {
    std::visit([this]<typename T>(const T& one) { WriteSorted(one, kKind<T>); }, value);
  }
  template <typename T>
  void WriteCompound(const T& record) {
    if (sorted_) return WriteSorted(record, nullptr);
    FieldCounter counter;
    Fields(counter, record);
    Head(kMap, counter.count);
    Fields(*this, record);
  }

  // Writes the entries as they come, then puts them in order. `kind`: of an alternative, or null.
  template <typename T>
  void WriteSorted(const T& record, const char* kind) {
    std::vector<Entry> outer = std::exchange(entries_, {});
    const std::size_t begin = bytes_.size();
    Fields(*this, record);
    if (kind != nullptr) (*this)("kind", std::string_view(kind));
    const std::string unsorted = bytes_.substr(begin);
    bytes_.resize(begin);
    Head(kMap, entries_.size());
    std::vector<std::size_t> order(entries_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [this](std::size_t i) { return entries_[i].key; });
    for (const std::size_t i : order) {
      const std::size_t from = entries_[i].at - begin;
      const std::size_t to = i + 1 < entries_.size() ? entries_[i + 1].at - begin : unsorted.size();
      bytes_.append(unsorted, from, to - from);
    }
    entries_ = std::move(outer);
  }

  std::string bytes_;
  const void* omitted_ = nullptr;
  bool sorted_ = false;
  std::vector<Entry> entries_;  // of the map that is being written, when it is to be sorted
};

}  // namespace tactus::codec
