// The core's plain structs as documents of CBOR, for who compares or changes them; base/fields.h
// says how a struct names its fields.
//
// CBOR and not JSON text: reasons may quote a worker's output, which need not be UTF-8, and a loss
// may be NaN.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/codec/cbor_writer.h"

namespace tactus::codec {

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

}  // namespace tactus::codec
