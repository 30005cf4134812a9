// The core's plain structs as documents of CBOR, and back; base/fields.h says how a struct names
// its fields.
//
// CBOR and not JSON text: reasons may quote a worker's output, which need not be UTF-8, and a loss
// may be NaN.

#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fields.h"
#include "base/id.h"
#include "base/time.h"
#include "coordinator/codec/cbor_writer.h"

namespace tactus::codec {

// Sets the fields of a struct from its map: one that the map lacks keeps its value, and what is not
// a field is ignored. Throws nlohmann::json::exception where a value has the wrong type; Unpack
// below catches it.
struct Reader {
  const nlohmann::json& in;

  template <typename T>
  void operator()(const char* key, T& value) {
    const auto found = in.find(key);
    if (found != in.end()) Decode(*found, value);
  }

  template <typename T>
  static void Decode(const nlohmann::json& from, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto number = from.get<std::int64_t>();
      Require(number >= 0 && number <= kEnumMax<T>, "value outside of its enum");
      value = static_cast<T>(number);
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      value = from.get<T>();
    } else {
      DecodeCompound(from, value);
    }
  }

 private:
  static void Require(bool holds, const char* otherwise) {
    if (!holds) throw nlohmann::json::out_of_range::create(401, otherwise, nullptr);
  }
  template <typename T>
  static void DecodeCompound(const nlohmann::json& from, T& record) {
    Require(from.is_object(), "not a map");
    Reader reader{from};
    Fields(reader, record);
  }
  static void DecodeCompound(const nlohmann::json& from, Duration& duration) {
    duration = Duration(from.get<Duration::rep>());
  }
  static void DecodeCompound(const nlohmann::json& from, Instant& time) {
    time = Instant(Duration(from.get<Duration::rep>()));
  }
  template <typename Tag>
  static void DecodeCompound(const nlohmann::json& from, Id<Tag>& id) {
    id.value = from.get<std::uint64_t>();
  }
  template <typename T>
  static void DecodeCompound(const nlohmann::json& from, std::optional<T>& value) {
    value.reset();
    if (!from.is_null()) Decode(from, value.emplace());
  }
  template <typename T>
  static void DecodeCompound(const nlohmann::json& from, std::vector<T>& items) {
    Require(from.is_array(), "not a list");
    items.clear();
    for (const nlohmann::json& item : from) Decode(item, items.emplace_back());
  }
  static void DecodeCompound(const nlohmann::json& from,
                             std::map<std::string, std::string>& items) {
    items = from.get<std::map<std::string, std::string>>();
  }
  template <typename... Ts>
  static void DecodeCompound(const nlohmann::json& from, std::variant<Ts...>& value) {
    const std::string kind = from.at("kind").get<std::string>();
    Require((DecodeIf<Ts>(kind, from, value) || ...), "unknown kind");
  }
  template <typename T, typename Variant>
  static bool DecodeIf(const std::string& kind, const nlohmann::json& from, Variant& value) {
    if (kind != kKind<T>) return false;
    Decode(from, value.template emplace<T>());
    return true;
  }
};

// A value as a document, for who compares or changes it.
template <typename T>
nlohmann::json Document(const T& value) {
  return nlohmann::json::from_cbor(CborWriter::Document(value));
}

// The bytes of a map.
inline std::string Pack(const nlohmann::json& value) {
  std::string bytes;
  nlohmann::json::to_cbor(value, bytes);
  return bytes;
}

// Reads the bytes of a map and hands it to `read`, which may throw as Reader does and returns a
// Status. `what` begins a message. Errors: DataLoss, not such bytes; those of `read`.
template <typename Read>
absl::Status Unpack(std::string_view bytes, std::string_view what, const Read& read) {
  // The library throws on an impossible length even when it is asked not to throw, so it is not
  // asked.
  try {
    return read(nlohmann::json::from_cbor(bytes.begin(), bytes.end()));
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(std::string(what) + " is damaged: " + error.what());
  }
}

}  // namespace tactus::codec
