// Fills a protobuf message from YAML, by the message's own descriptor: the .proto is the only
// schema.
//
// Keys are field names; enum values are written without prefix in lower case; a
// google.protobuf.Duration is text such as "1h30m"; the members of a oneof are plain keys of which
// at most one may be given.

#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "client/yaml/yaml_tree.h"

namespace tactus::client {

// Sets in `message` what `root` holds. Returns one line for each mistake, in the document's order,
// such as "stop.epochs: 'many' is not a whole number (line 9)"; empty: all is well. With mistakes,
// `message` holds what could be read. Ranges and missing fields are not looked at: those are the
// server's rules. Requires: fields of `message` are scalars, enums, Durations or messages of such;
// those that are repeated are of texts or of uint64, and maps are from text to text.
std::vector<std::string> ReadMessage(const YamlValue& root, google::protobuf::Message* message);

}  // namespace tactus::client
