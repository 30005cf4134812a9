// A struct with a list of fields, every field set to something that is not its default.

#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/id.h"
#include "base/time.h"

namespace tactus {

// Texts that hold a zero byte and are not UTF-8.
inline constexpr std::string_view kOddBytes("\x00\xff\xfe\x80", 4);

// Gives each field that Fields() names another value; lists get two items. A variant keeps its
// first alternative.
class Filler {
 public:
  // `ending`: of every text; fields that may be any bytes end with odd ones.
  explicit Filler(std::string_view ending) : ending_(ending) {}

  template <typename T>
  void operator()(const char*, T& value) {
    Set(value);
  }
  void Bytes(const char*, std::string& value) { value = std::to_string(++last_).append(kOddBytes); }
  void Bytes(const char* key, std::vector<std::string>& items) {
    for (int i = 0; i < 2; ++i) Bytes(key, items.emplace_back());
  }

 private:
  template <typename T>
  void Set(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(kEnumMax<T>);
    } else if constexpr (std::same_as<T, bool>) {
      value = !value;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(++last_ * 1.25);
    } else {
      SetCompound(value);
    }
  }
  void SetCompound(std::string& text) { text = std::to_string(++last_).append(ending_); }
  void SetCompound(Duration& duration) { duration = Duration(++last_); }
  void SetCompound(Instant& time) { time = Instant(Duration(++last_)); }
  template <typename Tag>
  void SetCompound(Id<Tag>& id) {
    id.value = (1ull << 60) + static_cast<std::uint64_t>(++last_);
  }
  template <typename T>
  void SetCompound(std::optional<T>& value) {
    Set(value.emplace());
  }
  template <typename T>
  void SetCompound(std::vector<T>& items) {
    for (int i = 0; i < 2; ++i) Set(items.emplace_back());
  }
  void SetCompound(std::map<std::string, std::string>& items) {
    items = {{"team", "a"}, {"", "empty"}};
  }
  template <typename... Ts>
  void SetCompound(std::variant<Ts...>& value) {
    std::visit([this](auto& one) { Fields(*this, one); }, value);
  }
  template <typename T>
  void SetCompound(T& record) {
    Fields(*this, record);
  }

  const std::string_view ending_;
  std::int64_t last_ = 0;
};

template <typename T>
T Filled(std::string_view ending = kOddBytes) {
  T record;
  Filler filler(ending);
  Fields(filler, record);
  return record;
}

}  // namespace tactus
