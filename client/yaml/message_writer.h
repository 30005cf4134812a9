// Protobuf messages as YAML, the reverse of message_reader.h, for `-o yaml`.

#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace tactus::client {

// The fields that are set, in the schema's order, in block style, two spaces a level, ending with a
// line break; "{}\n" when none is. Durations as "1m30s", timestamps as RFC 3339 in UTC, enum values
// as in job files, numbers with a unit as "1gbit", bytes as base64. What ReadMessage can read it
// reads back as an equal message.
std::string WriteMessage(const google::protobuf::Message& message);

}  // namespace tactus::client
