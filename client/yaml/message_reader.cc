#include "client/yaml/message_reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "base/check.h"
#include "client/text/names.h"
#include "client/text/quantity.h"
#include "runtime/options.h"
#include "tactus/v1/options.pb.h"

namespace tactus::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

// Whether a word says that the field is left out.
bool LeavesOut(const std::string& word, const FieldDescriptor& field) {
  const google::protobuf::FieldOptions& options = field.options();
  for (int i = 0; i < options.ExtensionSize(v1::field); ++i) {
    const v1::FieldRule& rule = options.GetExtension(v1::field, i);
    if (rule.has_left_out() && rule.left_out() == word) return true;
  }
  return false;
}

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type()->full_name() == "google.protobuf.Duration";
}

bool IsMap(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsDuration(field);
}

// Whether {} says something: there are defaults, and nothing has to be chosen.
bool IsCompleteWhenEmpty(const Descriptor& type) {
  bool defaults = false;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.real_containing_oneof() != nullptr) return false;
    const google::protobuf::FieldOptions& options = field.options();
    for (int j = 0; j < options.ExtensionSize(v1::field); ++j) {
      const v1::FieldRule& rule = options.GetExtension(v1::field, j);
      defaults = defaults || rule.has_default_value() || rule.has_left_out();
    }
  }
  return defaults;
}

// The policy of a section that has one, by which alone it may be given.
const FieldDescriptor* PolicyOf(const FieldDescriptor& section) {
  return IsMap(section) ? section.message_type()->FindFieldByName("policy") : nullptr;
}

// A field that holds nothing that steers a terminal or splits a line. Tabs are text.
bool IsPlain(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

// A number as people write it, in words.
std::string WithUnit(v1::Unit unit) {
  if (unit == v1::UNIT_BYTES) return "a size such as 128KiB or 1MiB";
  return unit == v1::UNIT_BYTES_PER_SECOND ? "a rate of 1kbit or more, such as 100mbit or 1gbit"
                                           : "a number";
}

// What a person must write there, for "expected ...".
std::string Expected(const FieldDescriptor& field) {
  if (field.is_map() && IsMap(*field.message_type()->map_value())) {
    return "names, each with a map of: " +
           JoinNames(FieldNames(*field.message_type()->map_value()->message_type()));
  }
  if (field.is_map()) return "a map of texts, such as {zone: a}";
  if (field.is_repeated()) {
    if (IsMap(field)) return "a list of maps of: " + JoinNames(FieldNames(*field.message_type()));
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      return "a list of texts, such as [a, b]";
    }
    return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE
               ? "a list of numbers, such as [0.5, 1]"
               : "a list of whole numbers, such as [1, 2]";
  }
  if (IsDuration(field)) return "a duration such as 90s, 30m or 1h30m";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return WithUnit(field.options().GetExtension(v1::unit));
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of: " + JoinNames(EnumValueNames(*field.enum_type()));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return (PolicyOf(field) == nullptr ? ""
                                         : "its policy, " + Expected(*PolicyOf(field)) + "; or ") +
             "a map of: " + JoinNames(FieldNames(*field.message_type()));
    default:
      return "a whole number";
  }
}

// `text` cut to a length that fits a line, with what cannot be printed replaced.
std::string Shown(const std::string& text) {
  constexpr std::size_t kShownMax = 60;
  std::string shown = text.substr(0, kShownMax);
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xC0) == 0x80) {
    shown.pop_back();  // not within a UTF-8 sequence
  }
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return "'" + shown + (shown.size() < text.size() ? "..." : "") + "'";
}

// Where the rest of a list goes that stands for the single value of `field`: "more_inputs" of
// "inputs"; null, a list may not stand there.
const FieldDescriptor* MoreOf(const FieldDescriptor& field) {
  return field.containing_type()->FindFieldByName("more_" + field.name());
}

class Reader {
 public:
  void ReadMap(const YamlValue& value, const std::string& path, Message* message) {
    if (value.kind != YamlValue::Kind::kMap) {
      const std::string found = value.kind == YamlValue::Kind::kList ? "a list" : Shown(value.text);
      const std::string allowed = JoinNames(FieldNames(*message->GetDescriptor()));
      Add(path, found + " stands where a map is expected", value.line,
          "; allowed keys: " + allowed);
      return;
    }
    std::map<std::string, int> lines;
    for (const YamlEntry& entry : value.entries) {
      const auto [first, fresh] = lines.emplace(entry.key, entry.line);
      const std::string entry_path = Join(path, entry.key);
      if (!fresh) {
        Add(entry_path, "given twice", entry.line,
            "; first on line " + std::to_string(first->second));
        continue;
      }
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(entry.key);
      if (field == nullptr) {
        AddUnknown(entry, entry_path, *message->GetDescriptor());
      } else {
        ReadField(entry, entry_path, {field, message});
      }
    }
    CheckOneofs(lines, path, *message->GetDescriptor());
  }

  std::vector<runtime::FieldViolation> mistakes;

 private:
  // A field and the message that it is of.
  struct Target {
    const FieldDescriptor* field;
    Message* message;
  };

  static std::string Join(const std::string& path, const std::string& key) {
    const std::string shown = Shown(key);
    const std::string plain = shown.substr(1, shown.size() - 2);
    return path.empty() ? plain : path + "." + plain;
  }

  void Add(const std::string& path, const std::string& what, int line,
           const std::string& rest = "") {
    const std::string place = line > 0 ? " (line " + std::to_string(line) + ")" : "";
    mistakes.push_back({path, what + place + rest});
  }

  void AddUnknown(const YamlEntry& entry, const std::string& path, const Descriptor& type) {
    const std::vector<std::string> names = FieldNames(type);
    const std::optional<std::string> nearest = NearestName(entry.key, names);
    const std::string meant = nearest ? "; did you mean '" + *nearest + "'?" : ";";
    Add(path, "unknown key", entry.line, meant + " allowed: " + JoinNames(names));
  }

  void CheckOneofs(const std::map<std::string, int>& lines, const std::string& path,
                   const Descriptor& type) {
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
      std::vector<std::string> given;
      int line = 0;
      for (int j = 0; j < type.oneof_decl(i)->field_count(); ++j) {
        const std::string& name = type.oneof_decl(i)->field(j)->name();
        const auto found = lines.find(name);
        if (found == lines.end()) continue;
        given.push_back(name);
        line = std::max(line, found->second);
      }
      if (given.size() < 2) continue;
      const std::string both = given.size() == 2 ? "both " : "";
      Add(path, both + QuoteNames(given) + " are given", line, "; allowed: one of them");
    }
  }

  void ReadField(const YamlEntry& entry, const std::string& path, const Target& target) {
    const YamlValue& value = entry.value;
    if (value.kind == YamlValue::Kind::kNull) {
      const bool defaulted = IsMap(*target.field) && !target.field->is_map() &&
                             IsCompleteWhenEmpty(*target.field->message_type());
      const std::string defaults = defaulted ? "; write {} for its defaults" : "";
      Add(path, "no value is given", entry.line,
          "; expected " + Expected(*target.field) + defaults);
    } else if (target.field->is_map()) {
      ReadFreeKeys(value, path, target);
    } else if (target.field->is_repeated()) {
      ReadList(value, path, target);
    } else if (const FieldDescriptor* policy = PolicyOf(*target.field);
               policy != nullptr && value.kind == YamlValue::Kind::kScalar) {
      Message* section =
          target.message->GetReflection()->MutableMessage(target.message, target.field);
      ReadScalar(value, path, {policy, section});
    } else if (IsMap(*target.field)) {
      ReadMap(value, path,
              target.message->GetReflection()->MutableMessage(target.message, target.field));
    } else if (const FieldDescriptor* more = MoreOf(*target.field);
               more != nullptr && value.kind == YamlValue::Kind::kList && !value.items.empty()) {
      ReadField({.key = entry.key, .line = entry.line, .value = value.items.front()}, path, target);
      YamlValue rest = value;
      rest.items.erase(rest.items.begin());
      ReadList(rest, Join(path.substr(0, path.rfind('.')), more->name()), {more, target.message});
    } else if (value.kind != YamlValue::Kind::kScalar) {
      const std::string found = value.kind == YamlValue::Kind::kList ? "a list" : "a map";
      Add(path, found + " stands where a single value is expected", value.line,
          "; expected " + Expected(*target.field));
    } else {
      ReadScalar(value, path, target);
    }
  }

  // A map whose keys are the user's, of texts or of messages.
  void ReadFreeKeys(const YamlValue& value, const std::string& path, const Target& target) {
    const auto* type = target.field->message_type();
    TACTUS_CHECK(type->map_key()->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
    if (value.kind != YamlValue::Kind::kMap) {
      const std::string found = value.kind == YamlValue::Kind::kList ? "a list" : Shown(value.text);
      return Add(path, found + " stands where a map is expected", value.line,
                 "; expected " + Expected(*target.field));
    }
    std::map<std::string, int> lines;
    for (const YamlEntry& entry : value.entries) {
      const auto [first, fresh] = lines.emplace(entry.key, entry.line);
      const std::string place = Join(path, entry.key);
      if (!fresh) {
        Add(place, "given twice", entry.line, "; first on line " + std::to_string(first->second));
      } else if (CheckPlain(entry.key, place, entry.line)) {
        Message* pair = target.message->GetReflection()->AddMessage(target.message, target.field);
        pair->GetReflection()->SetString(pair, type->map_key(), entry.key);
        ReadField(entry, place, {type->map_value(), pair});
      }
    }
  }

  bool CheckPlain(const std::string& text, const std::string& path, int line) {
    if (IsPlain(text)) return true;
    Add(path, Shown(text) + " holds a control character", line, "; allowed: printable text");
    return false;
  }

  // Lists are of messages, of numbers or of texts.
  void ReadList(const YamlValue& value, const std::string& path, const Target& target) {
    const bool texts = target.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool reals = target.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    const auto* reflection = target.message->GetReflection();
    TACTUS_CHECK(texts || reals || IsMap(*target.field) ||
                 target.field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64);
    if (value.kind != YamlValue::Kind::kList) {
      const std::string found = value.kind == YamlValue::Kind::kMap ? "a map" : Shown(value.text);
      return Add(path, found + " stands where a list is expected", value.line,
                 "; expected " + Expected(*target.field));
    }
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if (IsMap(*target.field)) {
        ReadMap(value.items[i], place, reflection->AddMessage(target.message, target.field));
      } else if (value.items[i].kind != YamlValue::Kind::kScalar) {
        const std::string due = texts ? "a text" : reals ? "a number" : "a whole number";
        Add(place, "is not " + due, value.items[i].line);
      } else if (texts) {
        if (!CheckPlain(value.items[i].text, place, value.items[i].line)) continue;
        reflection->AddString(target.message, target.field, value.items[i].text);
      } else if (reals) {
        const std::optional<double> number = ReadNumber(value.items[i], place);
        if (number) reflection->AddDouble(target.message, target.field, *number);
      } else if (const auto number = ReadWhole<std::uint64_t>(value.items[i], place)) {
        reflection->AddUInt64(target.message, target.field, *number);
      }
    }
  }

  void ReadScalar(const YamlValue& value, const std::string& path, const Target& target) {
    const auto& [field, message] = target;
    const auto* reflection = message->GetReflection();
    if (IsDuration(*field)) return ReadDuration(value, path, target);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (CheckPlain(value.text, path, value.line)) {
          reflection->SetString(message, field, value.text);
        }
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        return ReadBool(value, path, target);
      case FieldDescriptor::CPPTYPE_ENUM:
        return ReadEnum(value, path, target);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        if (const auto number = ReadAmount(value, path, field->options().GetExtension(v1::unit))) {
          reflection->SetDouble(message, field, *number);
        }
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        if (const auto number = ReadNumber(value, path)) {
          reflection->SetFloat(message, field, static_cast<float>(*number));
        }
        return;
      case FieldDescriptor::CPPTYPE_UINT32:
        if (const auto n = ReadWhole<std::uint32_t>(value, path))
          reflection->SetUInt32(message, field, *n);
        return;
      case FieldDescriptor::CPPTYPE_UINT64:
        if (const auto n = ReadWhole<std::uint64_t>(value, path))
          reflection->SetUInt64(message, field, *n);
        return;
      case FieldDescriptor::CPPTYPE_INT32:
        if (const auto n = ReadWhole<std::int32_t>(value, path))
          reflection->SetInt32(message, field, *n);
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        if (const auto n = ReadWhole<std::int64_t>(value, path))
          reflection->SetInt64(message, field, *n);
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        break;
    }
    TACTUS_CHECK(false);
  }

  template <typename T>
  std::optional<T> ReadWhole(const YamlValue& value, const std::string& path) {
    T number = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(value.text.data(), end, number);
    if (!value.quoted && rest == end && error == std::errc()) return number;
    const std::string range = "; allowed: " + std::to_string(std::numeric_limits<T>::min()) +
                              " to " + std::to_string(std::numeric_limits<T>::max());
    const bool negative = value.text.size() > 1 && value.text.front() == '-' &&
                          value.text.find_first_not_of("0123456789", 1) == std::string::npos;
    if (!value.quoted && rest == end && error == std::errc::result_out_of_range) {
      Add(path, value.text + " is out of range", value.line, range);
    } else if (!value.quoted && negative) {
      Add(path, value.text + " is negative", value.line, range);
    } else {
      AddNot(value, path, "a whole number");
    }
    return std::nullopt;
  }

  std::optional<double> ReadAmount(const YamlValue& value, const std::string& path, v1::Unit unit) {
    if (unit == v1::UNIT_UNSPECIFIED) return ReadNumber(value, path);
    const bool rate = unit == v1::UNIT_BYTES_PER_SECOND;
    const std::optional<double> bytes = rate ? ParseRate(value.text) : ParseSize(value.text);
    if (bytes && (!rate || *bytes >= kRateMin)) return bytes;
    AddNot(value, path, WithUnit(unit));
    return std::nullopt;
  }

  std::optional<double> ReadNumber(const YamlValue& value, const std::string& path) {
    double number = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(value.text.data(), end, number);
    if (!value.quoted && rest == end && error == std::errc() && std::isfinite(number))
      return number;
    if (!value.quoted && rest == end && error == std::errc::result_out_of_range) {
      Add(path, value.text + " is out of range", value.line, "; allowed: what a double can hold");
    } else {
      AddNot(value, path, "a finite number");
    }
    return std::nullopt;
  }

  void ReadBool(const YamlValue& value, const std::string& path, const Target& target) {
    if (value.quoted || (value.text != "true" && value.text != "false")) {
      return AddNot(value, path, "true or false");
    }
    target.message->GetReflection()->SetBool(target.message, target.field, value.text == "true");
  }

  void ReadEnum(const YamlValue& value, const std::string& path, const Target& target) {
    const auto* found = FindEnumValue(*target.field->enum_type(), value.text);
    if (found != nullptr) {
      return target.message->GetReflection()->SetEnum(target.message, target.field, found);
    }
    const std::vector<std::string> names = EnumValueNames(*target.field->enum_type());
    const std::optional<std::string> nearest = NearestName(value.text, names);
    const std::string meant = nearest ? "; did you mean '" + *nearest + "'?" : ";";
    Add(path, Shown(value.text) + " is unknown", value.line,
        meant + " allowed: " + JoinNames(names));
  }

  void ReadDuration(const YamlValue& value, const std::string& path, const Target& target) {
    if (LeavesOut(value.text, *target.field)) return;
    const absl::StatusOr<Duration> duration = runtime::ParseDuration(value.text);
    if (!duration.ok() && value.text.starts_with('-')) {
      return Add(path, Shown(value.text) + " is negative", value.line,
                 "; allowed: durations of 0 or more, such as 90s, 30m or 1h30m");
    }
    if (absl::IsOutOfRange(duration.status())) {
      return Add(path, Shown(value.text) + " is out of range", value.line,
                 "; allowed: durations of at most 10 years, such as 90s, 30m or 1h30m");
    }
    if (!duration.ok()) {
      return Add(path, Shown(value.text) + " is not a duration", value.line,
                 "; write a number with its unit, such as 90s, 30m, 1h30m or 500ms");
    }
    target.message->GetReflection()
        ->MutableMessage(target.message, target.field)
        ->CopyFrom(TimeUtil::NanosecondsToDuration(duration->count()));
  }

  void AddNot(const YamlValue& value, const std::string& path, const std::string& wanted) {
    const std::string hint = value.quoted ? "; it stands in quotes, which make it text" : "";
    Add(path, Shown(value.text) + " is not " + wanted, value.line, hint);
  }
};

}  // namespace

std::vector<runtime::FieldViolation> ReadMessage(const YamlValue& root, Message* message) {
  Reader reader;
  reader.ReadMap(root, "", message);
  return std::move(reader.mistakes);
}

std::vector<std::string> ErrorTexts(const std::vector<runtime::FieldViolation>& mistakes) {
  std::vector<std::string> texts;
  for (const auto& [field, description] : mistakes) {
    texts.push_back(field.empty() ? description : field + ": " + description);
  }
  return texts;
}

}  // namespace tactus::client
