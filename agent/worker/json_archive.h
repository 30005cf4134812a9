// Plain structs in proto3 JSON, over the lists of base/fields.h: keys in camelCase, 64-bit integers
// as strings, bytes in base64. A worker links no protobuf.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "agent/worker/proto_json.h"
#include "base/fields.h"
#include "base/time.h"

namespace tactus::worker {

// "gradientNorm2Local" of "gradient_norm2_local".
std::string CamelCase(const char* key);

// What an absent field is, but for lists and what is optional in its struct.
enum class Absent { kKeepsItsValue, kIsWrong };

// Sets the fields of a struct from its object. What is wrong is left in the reader's error.
class JsonReader {
 public:
  explicit JsonReader(FieldReader from, Absent absent = Absent::kKeepsItsValue)
      : from_(std::move(from)), absent_(absent) {}

  bool Has(const char* key) const { return from_.Has(CamelCase(key).c_str()); }

  // Calls `read` with the reader of an object, where it is there.
  void Within(const char* key, const auto& read) {
    if (!Has(key)) return;
    JsonReader reader(from_.Object(CamelCase(key).c_str()), absent_);
    read(reader);
  }

  template <typename T>
  void operator()(const char* key, T& value) {
    Read(CamelCase(key).c_str(), value);
  }
  void Bytes(const char* key, std::vector<std::string>& items) {
    items = from_.BytesList(CamelCase(key).c_str());
  }
  void Bytes(const char* key, std::string& bytes) {
    if (auto found = from_.Bytes(CamelCase(key).c_str())) bytes = *std::move(found);
  }

 private:
  // An enum by its name; an empty one reads as absent.
  template <typename T>
  requires std::is_enum_v<T>
  void Read(const char* key, T& value) { Set(key, from_.template Named<T>(key), value); }
  void Read(const char* key, std::string& value) { Set(key, from_.String(key), value); }
  void Read(const char* key, double& value) { Set(key, from_.Number(key), value); }
  void Read(const char* key, bool& value) { Set(key, from_.Bool(key), value); }
  void Read(const char* key, std::uint64_t& value) { Set(key, from_.Unsigned(key), value); }
  void Read(const char* key, std::uint32_t& value) { Set(key, from_.Unsigned32(key), value); }
  void Read(const char* key, Duration& value) { Set(key, from_.Seconds(key), value); }
  void Read(const char* key, std::vector<std::string>& items) { items = from_.StringList(key); }
  void Read(const char* key, std::vector<double>& items) { items = from_.NumberList(key); }
  void Read(const char* key, std::vector<std::uint32_t>& items) { items = from_.UnsignedList(key); }
  void Read(const char* key, std::vector<std::uint64_t>& items) { items = from_.WideList(key); }
  template <typename T>
  void Read(const char* key, std::optional<T>& value) {
    if (from_.Has(key)) Read(key, value.emplace());
  }
  template <typename T>
  requires std::is_class_v<T>
  void Read(const char* key, T& record) {
    JsonReader reader(from_.Object(key), absent_);
    Fields(reader, record);
  }
  template <typename T>
  void Set(const char* key, std::optional<T> read, T& value) {
    if (read) value = *std::move(read);
    if (!read && absent_ == Absent::kIsWrong) from_.RequireThere(key);
  }

  const FieldReader from_;
  const Absent absent_;
};

// Makes the object of a struct. Every field is there, those that are zero or empty too, but for
// those that are not set.
class JsonWriter {
 public:
  // {"report": {...}}
  template <typename... Ts>
  static Json Encode(const std::variant<Ts...>& message) {
    return std::visit(
        []<typename T>(const T& one) {
          JsonWriter writer;
          Fields(writer, one);
          return Json{{kKind<T>, std::move(writer.out_)}};
        },
        message);
  }

  template <typename T>
  void operator()(const char* key, const T& value) {
    out_[CamelCase(key)] = Value(value);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) out_[CamelCase(key)] = Value(*value);
  }
  void Bytes(const char* key, const std::string& bytes);
  template <typename T>
  void Inline(const T& record) {
    Fields(*this, record);
  }

 private:
  static Json Value(double value);
  static Json Value(std::uint64_t value) { return std::to_string(value); }
  static Json Value(std::uint32_t value) { return value; }
  static Json Value(bool value) { return value; }
  static Json Value(const std::string& value) { return value; }
  static Json Value(const std::vector<std::string>& items) { return items; }
  static Json Value(const std::vector<std::uint32_t>& items) { return items; }
  template <typename T>
  requires std::is_class_v<T>
  static Json Value(const T& record) {
    JsonWriter writer;
    Fields(writer, record);
    return std::move(writer.out_);
  }

  Json out_ = Json::object();
};

}  // namespace tactus::worker
