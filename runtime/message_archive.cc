#include "runtime/message_archive.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"

namespace tactus::runtime {
namespace {

// A check whose words name the field.
void Require(bool holds, const std::string& message, const std::string& field, const char* what) {
  if (!holds) std::fprintf(stderr, "%s.%s: %s\n", message.c_str(), field.c_str(), what);
  TACTUS_CHECK(holds);
}

}  // namespace

const google::protobuf::FieldDescriptor* MessageBinder::Find(
    const std::string& key, google::protobuf::FieldDescriptor::CppType type, bool repeated) const {
  if (std::ranges::count(apart_.ours, key) > 0) return nullptr;
  const auto* const field = message_.FindFieldByName(key);
  Require(field != nullptr, message_.full_name(), key,
          "the message lacks this field of the struct");
  Require(field->cpp_type() == type && field->is_repeated() == repeated, message_.full_name(), key,
          "is of another type in the struct");
  return field;
}

void MessageBinder::RequireAll() const {
  for (int i = 0; i < message_.field_count(); ++i) {
    const auto* const field = message_.field(i);
    const bool named = std::ranges::count(bound_, field, &MessageField::field) == 1;
    const bool apart = std::ranges::count(apart_.theirs, field->name()) == 1;
    Require(named || apart, message_.full_name(), field->name(),
            "the struct lacks this field of the message");
  }
}

}  // namespace tactus::runtime
