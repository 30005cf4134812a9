#include "client/yaml/message_writer.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/check.h"
#include "base/time.h"
#include "client/text/names.h"
#include "client/text/quantity.h"
#include "client/yaml/yaml_tree.h"
#include "runtime/options.h"
#include "tactus/v1/options.pb.h"

namespace tactus::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

template <typename T>
std::string Number(T number) {
  std::array<char, 40> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  TACTUS_CHECK(error == std::errc());
  return std::string(text.data(), end);
}

// A field of a message, one element of it when it is repeated.
struct Source {
  const Message* message;
  const FieldDescriptor* field;
  int index = -1;
};

const Message& SubMessage(const Source& source) {
  const auto* reflection = source.message->GetReflection();
  return source.index < 0
             ? reflection->GetMessage(*source.message, source.field)
             : reflection->GetRepeatedMessage(*source.message, source.field, source.index);
}

// Messages of this kind are written as one word.
bool IsWord(const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return true;
  const std::string& name = field.message_type()->full_name();
  return name == "google.protobuf.Duration" || name == "google.protobuf.Timestamp";
}

std::string TimeWord(const Message& message) {
  if (message.GetDescriptor()->full_name() == "google.protobuf.Timestamp") {
    google::protobuf::Timestamp timestamp;
    timestamp.CopyFrom(message);
    return "\"" + TimeUtil::ToString(timestamp) + "\"";
  }
  google::protobuf::Duration duration;
  duration.CopyFrom(message);
  const std::int64_t nanoseconds = TimeUtil::DurationToNanoseconds(duration);
  return (nanoseconds < 0 ? "-" : "") + runtime::FormatDuration(Duration(std::abs(nanoseconds)));
}

std::string Text(const Source& source) {
  const auto* reflection = source.message->GetReflection();
  const std::string text =
      source.index < 0 ? reflection->GetString(*source.message, source.field)
                       : reflection->GetRepeatedString(*source.message, source.field, source.index);
  if (source.field->type() != FieldDescriptor::TYPE_BYTES) return YamlScalar(text);
  return YamlScalar(absl::Base64Escape(text));
}

std::string Amount(double number, const FieldDescriptor& field) {
  const v1::Unit unit = field.options().GetExtension(v1::unit);
  if (unit == v1::UNIT_UNSPECIFIED) return Number(number);
  return unit == v1::UNIT_BYTES ? FormatSize(number) : FormatBitRate(number);
}

std::string Word(const Source& source) {
  const auto& [message, field, index] = source;
  const auto* reflection = message->GetReflection();
  const bool single = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return TimeWord(SubMessage(source));
    case FieldDescriptor::CPPTYPE_STRING:
      return Text(source);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumValueName(single ? *reflection->GetEnum(*message, field)
                                  : *reflection->GetRepeatedEnum(*message, field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (single ? reflection->GetBool(*message, field)
                     : reflection->GetRepeatedBool(*message, field, index))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Amount(single ? reflection->GetDouble(*message, field)
                           : reflection->GetRepeatedDouble(*message, field, index),
                    *field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(single ? reflection->GetFloat(*message, field)
                           : reflection->GetRepeatedFloat(*message, field, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return Number(single ? reflection->GetUInt32(*message, field)
                           : reflection->GetRepeatedUInt32(*message, field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return Number(single ? reflection->GetUInt64(*message, field)
                           : reflection->GetRepeatedUInt64(*message, field, index));
    case FieldDescriptor::CPPTYPE_INT32:
      return Number(single ? reflection->GetInt32(*message, field)
                           : reflection->GetRepeatedInt32(*message, field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return Number(single ? reflection->GetInt64(*message, field)
                           : reflection->GetRepeatedInt64(*message, field, index));
  }
  TACTUS_CHECK(false);
  return "";
}

std::vector<std::string> Lines(const Message& message);

// The lines of a sub-message below `head`, indented; the head alone with {} when there are none.
void AddBelow(const std::string& head, const Message& message, std::vector<std::string>* lines) {
  const std::vector<std::string> below = Lines(message);
  lines->push_back(below.empty() ? head + " {}" : head);
  for (const std::string& line : below) lines->push_back("  " + line);
}

// "- key: value" and the rest of that element's lines under its key.
void AddElement(const Source& source, std::vector<std::string>* lines) {
  if (IsWord(*source.field)) return lines->push_back("  - " + Word(source));
  const std::vector<std::string> element = Lines(SubMessage(source));
  if (element.empty()) return lines->push_back("  - {}");
  for (std::size_t i = 0; i < element.size(); ++i) {
    lines->push_back((i == 0 ? "  - " : "    ") + element[i]);
  }
}

// "[1, 2, 3]": lists of numbers are read across.
std::string Row(const Source& source, int size) {
  std::string row = "[";
  for (int i = 0; i < size; ++i) {
    row += (i == 0 ? "" : ", ") + Word({source.message, source.field, i});
  }
  return row + "]";
}

void AddRepeated(const Source& source, std::vector<std::string>* lines) {
  const int size = source.message->GetReflection()->FieldSize(*source.message, source.field);
  const bool numbers = source.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
                       source.field->cpp_type() != FieldDescriptor::CPPTYPE_STRING;
  if (numbers) return lines->push_back(source.field->name() + ": " + Row(source, size));
  lines->push_back(source.field->name() + ":");
  for (int i = 0; i < size; ++i) {
    const Source element = {source.message, source.field, i};
    if (source.field->is_map()) {
      const Message& pair = SubMessage(element);
      const auto* type = pair.GetDescriptor();
      lines->push_back("  " + Word({&pair, type->map_key()}) + ": " +
                       Word({&pair, type->map_value()}));
    } else {
      AddElement(element, lines);
    }
  }
}

std::vector<std::string> Lines(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::vector<std::string> lines;
  for (const FieldDescriptor* field : fields) {
    const Source source = {&message, field};
    if (field->is_repeated()) {
      AddRepeated(source, &lines);
    } else if (IsWord(*field)) {
      lines.push_back(field->name() + ": " + Word(source));
    } else {
      AddBelow(field->name() + ":", SubMessage(source), &lines);
    }
  }
  return lines;
}

}  // namespace

std::string WriteMessage(const Message& message) {
  const std::vector<std::string> lines = Lines(message);
  if (lines.empty()) return "{}\n";
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace tactus::client
