#include "agent/worker/proto_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace tactus::worker {
namespace {

std::optional<std::uint64_t> ToUnsigned(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  // protobuf's JSON has 64-bit numbers as strings, as a double would lose digits.
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> ToBytes(const Json& value) {
  std::string bytes;
  if (!value.is_string() || !absl::Base64Unescape(value.get_ref<const std::string&>(), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace

FieldReader::FieldReader(const Json& object, std::string path, std::string& error)
    : object_(object), path_(std::move(path)), error_(error) {}

const Json* FieldReader::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool FieldReader::Has(const char* key) const { return Find(key) != nullptr; }

void FieldReader::Fail(const char* key, const std::string& what) const {
  if (error_.empty()) error_ = (path_.empty() ? "" : path_ + ".") + key + ": " + what;
}

void FieldReader::RequireThere(const char* key) const {
  if (!Has(key)) Fail(key, "is missing");
}

bool FieldReader::Names(const std::string& name, std::string_view word) {
  return name == word || name.ends_with("_" + absl::AsciiStrToUpper(std::string(word)));
}

FieldReader FieldReader::Object(const char* key) const {
  static const Json kEmpty = Json::object();
  const std::string path = path_.empty() ? key : path_ + "." + key;
  const Json* value = Find(key);
  if (value == nullptr) return {kEmpty, path, error_};
  if (value->is_object()) return {*value, path, error_};
  Fail(key, "not an object");
  return {kEmpty, path, error_};
}

std::optional<std::string> FieldReader::String(const char* key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Fail(key, "not a string");
  return std::nullopt;
}

std::optional<double> FieldReader::Number(const char* key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  // JSON has no such numbers: protobuf's mapping has them as these strings.
  if (*value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (*value == "Infinity") return std::numeric_limits<double>::infinity();
  if (*value == "-Infinity") return -std::numeric_limits<double>::infinity();
  Fail(key, "not a number");
  return std::nullopt;
}

std::optional<std::uint64_t> FieldReader::Unsigned(const char* key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> number = ToUnsigned(*value);
  if (!number) Fail(key, "not a whole number");
  return number;
}

std::optional<std::uint32_t> FieldReader::Unsigned32(const char* key) const {
  const std::optional<std::uint64_t> wide = Unsigned(key);
  const std::optional<std::uint32_t> number = Narrow(wide);
  if (wide && !number) Fail(key, "not a whole number below 2^32");
  return number;
}

std::optional<bool> FieldReader::Bool(const char* key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Fail(key, "not true or false");
  return std::nullopt;
}

std::optional<Duration> FieldReader::Seconds(const char* key) const {
  const std::optional<std::string> text = String(key);
  if (!text) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end + 1 != text->data() + text->size() || *end != 's') {
    Fail(key, "not a duration such as \"1.5s\"");
    return std::nullopt;
  }
  return tactus::Seconds(seconds);
}

std::optional<std::string> FieldReader::Bytes(const char* key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<std::string> bytes = ToBytes(*value);
  if (!bytes) Fail(key, "not base64");
  return bytes;
}

template <typename T, typename Convert>
std::vector<T> FieldReader::List(const char* key, const char* of, const Convert& convert) const {
  std::vector<T> list;
  const Json* values = Find(key);
  if (values == nullptr) return list;
  if (!values->is_array()) Fail(key, "not a list");
  for (const Json& value : *values) {
    std::optional<T> item = convert(value);
    if (!item) Fail(key, std::string("not a list of ") + of);
    list.push_back(std::move(item).value_or(T{}));
  }
  return list;
}

std::vector<std::string> FieldReader::BytesList(const char* key) const {
  return List<std::string>(key, "base64", ToBytes);
}

std::vector<std::string> FieldReader::StringList(const char* key) const {
  return List<std::string>(key, "texts", [](const Json& value) {
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  });
}

std::vector<double> FieldReader::NumberList(const char* key) const {
  return List<double>(key, "numbers", [](const Json& value) {
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  });
}

std::vector<std::uint32_t> FieldReader::UnsignedList(const char* key) const {
  std::vector<std::uint32_t> list;
  for (const std::uint64_t wide : WideList(key)) {
    const std::optional<std::uint32_t> number = Narrow(wide);
    if (!number) Fail(key, "not a list of whole numbers");
    list.push_back(number.value_or(0));
  }
  return list;
}

std::vector<std::uint64_t> FieldReader::WideList(const char* key) const {
  return List<std::uint64_t>(key, "whole numbers", ToUnsigned);
}

std::optional<std::uint32_t> Narrow(std::optional<std::uint64_t> value) {
  if (!value || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

}  // namespace tactus::worker
