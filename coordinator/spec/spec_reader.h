// Reads plain structs from a resolved specification, over the lists of base/fields.h that engines,
// data sets and models have beside their options.

#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/fields.h"
#include "base/time.h"
#include "coordinator/spec/field_rules.h"

namespace tactus::spec {

// By the fields' names, which the message must have.
class SpecReader {
 public:
  explicit SpecReader(const google::protobuf::Message& from) : from_(from) {}

  bool Has(const char* key) const { return in_.HasField(from_, Find(key)); }

  // Calls `read` with the reader of a message, where it is there.
  void Within(const char* key, const auto& read) {
    if (!Has(key)) return;
    SpecReader reader(in_.GetMessage(from_, Find(key)));
    read(reader);
  }

  template <typename T>
  void operator()(const char* key, T& value) {
    Read(Find(key), value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (Has(key)) Read(Find(key), value.emplace());
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  const Field* Find(const char* key) const {
    const Field* field = from_.GetDescriptor()->FindFieldByName(key);
    TACTUS_CHECK(field != nullptr);
    return field;
  }

  void Read(const Field* field, bool& value) { value = in_.GetBool(from_, field); }
  void Read(const Field* field, double& value) { value = in_.GetDouble(from_, field); }
  void Read(const Field* field, std::uint32_t& value) { value = in_.GetUInt32(from_, field); }
  void Read(const Field* field, std::uint64_t& value) { value = in_.GetUInt64(from_, field); }
  void Read(const Field* field, std::string& value) { value = in_.GetString(from_, field); }
  template <typename T>
  void Read(const Field* field, std::vector<T>& items) {
    const auto found = in_.GetRepeatedFieldRef<T>(from_, field);
    items.assign(found.begin(), found.end());
  }
  void Read(const Field* field, Duration& value) {
    google::protobuf::Duration duration;
    duration.CopyFrom(in_.GetMessage(from_, field));
    value = std::chrono::seconds(duration.seconds()) + Duration(duration.nanos());
  }
  template <typename T>
  requires std::is_enum_v<T>
  void Read(const Field* field, T& value) {
    const std::string word = WordOf(*field->enum_type(), in_.GetEnumValue(from_, field));
    value = ValueNamed<T>(word).value_or(value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void Read(const Field* field, T& record) {
    SpecReader reader(in_.GetMessage(from_, field));
    Fields(reader, record);
  }

  const google::protobuf::Message& from_;
  const google::protobuf::Reflection& in_ = *from_.GetReflection();
};

}  // namespace tactus::spec
