#include "agent/worker/json_archive.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace tactus::worker {

std::string CamelCase(const char* key) {
  std::string camel;
  for (; *key != '\0'; ++key) {
    const bool starts = *key == '_' && key[1] != '\0';
    camel += starts ? absl::ascii_toupper(static_cast<unsigned char>(*++key)) : *key;
  }
  return camel;
}

void JsonWriter::Bytes(const char* key, const std::string& bytes) {
  out_[CamelCase(key)] = absl::Base64Escape(bytes);
}

// proto3 JSON writes non-finite numbers as strings.
Json JsonWriter::Value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace tactus::worker
