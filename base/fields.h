// A plain struct that travels names its fields once, beside itself:
//
//   void Fields(auto& archive, Of<Report> auto& report) {
//     archive("round", report.round);
//     archive("plan_version", report.plan_version);
//   }
//
// An archive is called with each key and field, in the list's order, and writes them, reads them or
// looks at them. Three of them travel over the same lists: CBOR for store and tape
// (coordinator/codec), proto3 JSON for workers (agent/worker/json_archive.h) and protobuf for
// agents and users (runtime/message_archive.h). A key is the name of the field in the message,
// where the struct has one; keys that a store or a tape holds are never changed.

#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace tactus {

// T is U or const U: a list serves readers and writers.
template <typename T, typename U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

// The highest value of an enum whose values are 0, 1, 2 and so on; -1: none was named.
template <typename T>
constexpr int kEnumMax = -1;

// What stands for an alternative of a variant: the value of the key "kind" in CBOR, the name of the
// field of a message's oneof; null: none was named.
template <typename T>
constexpr const char* kKind = nullptr;

// The value that NameOf(T), which stands beside the enum, calls by this name; empty: none.
template <typename T>
std::optional<T> ValueNamed(std::string_view name) {
  static_assert(kEnumMax<T> >= 0);
  for (int i = 0; i <= kEnumMax<T>; ++i) {
    if (NameOf(static_cast<T>(i)) == name) return static_cast<T>(i);
  }
  return std::nullopt;
}

// "average or adasum": the names of all values of such an enum, for people.
template <typename T>
std::string NamesOf() {
  static_assert(kEnumMax<T> >= 0);
  std::string names;
  for (int i = 0; i <= kEnumMax<T>; ++i) {
    if (i > 0) names += i < kEnumMax<T> ? ", " : " or ";
    names += NameOf(static_cast<T>(i));
  }
  return names;
}

// A struct whose fields stand among those of the struct that holds it, in a message and in JSON. In
// CBOR it is a map of its own.
template <typename Archive, typename T>
void Inline(Archive& archive, const char* key, T& value) {
  if constexpr (requires { archive.Inline(value); }) {
    archive.Inline(value);
  } else {
    archive(key, value);
  }
}

// Text, or a list of texts, that may be any bytes: base64 in JSON.
template <typename Archive, typename T>
void Bytes(Archive& archive, const char* key, T& value) {
  if constexpr (requires { archive.Bytes(key, value); }) {
    archive.Bytes(key, value);
  } else {
    archive(key, value);
  }
}

}  // namespace tactus
