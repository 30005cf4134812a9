// Fills a protobuf message from YAML, by the message's own descriptor: the .proto is the only
// schema.
//
// Keys are field names; enum values are written without prefix in lower case; a
// google.protobuf.Duration is text such as "1h30m", a number with a unit (options.proto) is as
// quantity.h has it; the members of a oneof are plain keys of which at most one may be given.

#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "client/yaml/yaml_tree.h"
#include "runtime/status.h"

namespace tactus::client {

// Sets in `message` what `root` holds. Returns the mistakes in the document's order, such as, of
// stop.epochs, "'many' is not a whole number (line 9)"; empty: all is well. With mistakes,
// `message` holds what could be read. Ranges and missing fields are not looked at: those are the
// server's rules. Requires: fields of `message` are scalars, enums, Durations or messages of such;
// those that are repeated are of texts, uint64 or messages, and maps are from text.
std::vector<runtime::FieldViolation> ReadMessage(const YamlValue& root,
                                                 google::protobuf::Message* message);

// "stop.epochs: 'many' is not a whole number (line 9)", a line each.
std::vector<std::string> ErrorTexts(const std::vector<runtime::FieldViolation>& mistakes);

}  // namespace tactus::client
