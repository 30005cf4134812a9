// The rules that stand on the fields of spec.proto and cluster.proto themselves
// (proto/tactus/v1/options.proto): one walk checks them, one fills in the defaults.

#pragma once

#include <google/protobuf/message.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/spec/field_checks.h"

namespace tactus::spec {

// A message of a file. `variant` is the one of its `policy`'s fields that hold; of a
// message that has no policy, what was chosen around it: "adamw", "resnet18"; empty: not known, so
// that no field is found not to belong to it. Of a policy's own default, the variant is what was
// chosen around its message: adapt.policy of adapt.batch.policy.

// Every field that is given, here and below, belongs to the variant, is a value that its enum
// knows, is in its range, and, for a duration without one, above 0 and at most 10 years. Lists have
// as many items as they may. Numbers and texts in lists are not looked at.
//
// path  of the message in the file, "adapt.batch."; empty for the whole
void CheckFields(const google::protobuf::Message& message, const std::string& path,
                 const std::string& variant, FieldChecks& checks);

// Gives every field that has a default, here and below, and no value that default. A message that
// is not there comes to be when a field of it has a default in all variants.
void FillDefaults(const std::string& variant, google::protobuf::Message* message);

// Takes out of a message the fields that its variant does not have, which would be refused, but for
// those in `kept`.
void DropForeign(const std::string& variant, const std::set<std::string>& kept,
                 google::protobuf::Message* message);

// All variants of the message that the rules of its fields name, in their order.
std::vector<std::string> VariantsOf(const google::protobuf::Descriptor& message);

// "abs" of BATCH_POLICY_ABS. Empty for what is unknown, and for 0, which stands for the default.
std::string WordOf(const google::protobuf::EnumDescriptor& type, int value);

}  // namespace tactus::spec
