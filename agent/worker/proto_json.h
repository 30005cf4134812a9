// Reading proto3 JSON with nlohmann-json: absent fields are defaults, 64-bit integers may be
// strings.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "nlohmann/json.hpp"

namespace tactus::worker {

using Json = nlohmann::json;

// A reader over one JSON object. The first field of a wrong type is remembered and reads as absent,
// so that a whole message is read without a check a field; ask error() at the end.
class FieldReader {
 public:
  // path: of this object, for messages; empty at the top. `error` is shared with all readers below.
  FieldReader(const Json& object, std::string path, std::string& error);

  bool Has(const char* key) const;
  // The whole object, for people.
  std::string Text() const { return object_.dump(2); }
  FieldReader Object(const char* key) const;  // empty when absent

  std::optional<std::string> String(const char* key) const;
  std::optional<double> Number(const char* key) const;
  std::optional<std::uint64_t> Unsigned(const char* key) const;
  std::optional<std::uint32_t> Unsigned32(const char* key) const;
  std::optional<bool> Bool(const char* key) const;
  std::optional<Duration> Seconds(const char* key) const;   // "1.5s"
  std::optional<std::string> Bytes(const char* key) const;  // base64
  std::vector<std::string> BytesList(const char* key) const;
  std::vector<std::string> StringList(const char* key) const;
  std::vector<double> NumberList(const char* key) const;
  std::vector<std::uint32_t> UnsignedList(const char* key) const;
  std::vector<std::uint64_t> WideList(const char* key) const;

  // What is absent is wrong.
  void RequireThere(const char* key) const;
  // What is there is, for that reason.
  void Refuse(const char* key, const std::string& reason) const { Fail(key, reason); }

  // The value of an enum with a NameOf, by its name or as proto3 JSON has it, "PRECISION_FLOAT32"
  // of "float32". An empty name reads as absent.
  template <typename Enum>
  std::optional<Enum> Named(const char* key) const {
    const std::optional<std::string> name = String(key);
    if (!name || name->empty()) return std::nullopt;
    for (int i = 0; i <= kEnumMax<Enum>; ++i) {
      if (Names(*name, NameOf(static_cast<Enum>(i)))) return static_cast<Enum>(i);
    }
    Fail(key, "found \"" + *name + "\", allowed is " + NamesOf<Enum>());
    return std::nullopt;
  }

 private:
  // Whether `name` is the word, or ends with it behind its enum's name.
  static bool Names(const std::string& name, std::string_view word);
  const Json* Find(const char* key) const;
  // `convert` makes a T of an item, or nothing; `of`: what items are, for people.
  template <typename T, typename Convert>
  std::vector<T> List(const char* key, const char* of, const Convert& convert) const;
  void Fail(const char* key, const std::string& what) const;

  const Json& object_;
  const std::string path_;
  std::string& error_;
};

// The 32-bit value of an optional 64-bit one.
std::optional<std::uint32_t> Narrow(std::optional<std::uint64_t> value);

}  // namespace tactus::worker
