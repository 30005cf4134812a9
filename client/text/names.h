// Words of the schema as a person writes them, and what they may have meant.

#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::client {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, where
// no letter is touched twice ("optimal string alignment"). O(|a| |b|) time.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, upper and lower case alike; none when all are further than a
// third of its letters (at least 1). The first of equals.
std::optional<std::string> NearestName(std::string_view word,
                                       const std::vector<std::string>& candidates);

// "fixed, proportional": for "allowed: ...".
std::string JoinNames(const std::vector<std::string>& names);

// "'a' and 'b'", "'a', 'b' and 'c'".
std::string QuoteNames(const std::vector<std::string>& names);

// BATCH_POLICY_FIXED of enum BatchPolicy is "fixed".
std::string EnumValueName(const google::protobuf::EnumValueDescriptor& value);

// All but the unspecified value (number 0), in the schema's order.
std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type);

// The value of that name; null when there is none. The unspecified value has no name.
const google::protobuf::EnumValueDescriptor* FindEnumValue(
    const google::protobuf::EnumDescriptor& type, std::string_view name);

// The keys of a message, in the schema's order.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);

}  // namespace tactus::client
