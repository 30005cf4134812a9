#include "coordinator/spec/field_rules.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/text_format.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/time.h"
#include "runtime/options.h"
#include "tactus/v1/options.pb.h"

namespace tactus::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr char kPolicy[] = "policy";
constexpr char kFinite[] = "a finite number";

// "BATCH_POLICY_", of the enum whose zero is BATCH_POLICY_UNSPECIFIED.
std::string PrefixOf(const EnumDescriptor& type) {
  const std::string& zero = type.value(0)->name();
  return zero.substr(0, zero.size() - std::string_view("UNSPECIFIED").size());
}

// ---- rules

bool HoldsFor(const v1::FieldRule& rule, const std::string& variant) {
  return rule.of().empty() || std::ranges::find(rule.of(), variant) != rule.of().end();
}

// What holds for the field; none: the variant does not have it.
std::optional<v1::FieldRule> RuleOf(const FieldDescriptor& field, const std::string& variant) {
  const google::protobuf::FieldOptions& options = field.options();
  v1::FieldRule all;
  bool applies = variant.empty() || options.ExtensionSize(v1::field) == 0;
  for (const v1::FieldRule& rule : options.GetRepeatedExtension(v1::field)) {
    if (!HoldsFor(rule, variant)) continue;
    all.MergeFrom(rule);
    applies = true;
  }
  if (!applies) return std::nullopt;
  return all;
}

bool IsDuration(const FieldDescriptor& field) {
  return field.message_type() == google::protobuf::Duration::descriptor();
}

bool IsListOfMessages(const FieldDescriptor& field) {
  return field.is_repeated() && field.message_type() != nullptr && !field.is_map();
}

// Of the message itself, which its policy says where it has one.
std::string VariantOf(const Message& message, const std::string& chosen) {
  const FieldDescriptor* policy = message.GetDescriptor()->FindFieldByName(kPolicy);
  if (policy == nullptr) return chosen;
  const int value = message.GetReflection()->GetEnumValue(message, policy);
  if (value != 0) return WordOf(*policy->enum_type(), value);
  return RuleOf(*policy, chosen)->default_value();
}

// What is chosen around a message in this field: the field itself where it is one of several to
// choose from, else what is around it, too.
std::string VariantIn(const FieldDescriptor& field, const std::string& variant) {
  return field.real_containing_oneof() == nullptr ? variant : field.name();
}

std::vector<std::string> WordsOf(const EnumDescriptor& type) {
  std::vector<std::string> words;
  for (int i = 1; i < type.value_count(); ++i) {
    words.push_back(WordOf(type, type.value(i)->number()));
  }
  return words;
}

void AddVariants(const FieldDescriptor& field, std::vector<std::string>& variants) {
  for (const v1::FieldRule& rule : field.options().GetRepeatedExtension(v1::field)) {
    for (const std::string& variant : rule.of()) {
      if (std::ranges::find(variants, variant) == variants.end()) variants.push_back(variant);
    }
  }
}

void RefuseVariant(const std::string& path, const FieldDescriptor& field,
                   const std::string& variant, FieldChecks& checks) {
  std::vector<std::string> owners;
  AddVariants(field, owners);
  const bool policy = field.containing_type()->FindFieldByName(kPolicy) != nullptr;
  checks.Add(path, fmt::format("does not apply to {}{}; it is for {}", policy ? "policy " : "",
                               variant, Enumerate(owners)));
}

// ---- ranges

// As a message has it in words. long double holds every double and every whole number of 64 bits.
struct Range {
  long double low = -std::numeric_limits<long double>::infinity();
  long double high = std::numeric_limits<long double>::infinity();
  bool above = false;  // the low end itself is not in it
  bool below = false;  // nor is the high end
};

// Durations are in seconds.
long double ParseEnd(const std::string& text) {
  if (const absl::StatusOr<Duration> duration = runtime::ParseDuration(text); duration.ok()) {
    return static_cast<long double>(duration->count()) / 1e9L;
  }
  long double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TACTUS_CHECK(error == std::errc() && end == text.data() + text.size());
  return value;
}

// "[above] LOW [or more]", "[above] LOW to [below] HIGH", "a finite number".
Range ParseRange(const std::string& text) {
  Range range;
  if (text.empty() || text == kFinite) return range;
  std::vector<std::string> words = absl::StrSplit(text, ' ');
  range.above = words.front() == "above";
  if (range.above) words.erase(words.begin());
  range.low = ParseEnd(words.front());
  range.below = words.size() == 4 && words[2] == "below";
  const bool open = words.size() == 1 || (words.size() == 3 && words[1] == "or");
  if (!open) {
    TACTUS_CHECK(words.size() == (range.below ? 4 : 3) && words[1] == "to");
    range.high = ParseEnd(words.back());
  }
  return range;
}

bool Contains(const Range& range, long double value) {
  return std::isfinite(value) && (range.above ? value > range.low : value >= range.low) &&
         (range.below ? value < range.high : value <= range.high);
}

template <typename Number>
void CheckRange(const std::string& path, Number value, const v1::FieldRule& rule,
                FieldChecks& checks) {
  if (!rule.has_allowed() || Contains(ParseRange(rule.allowed()), value)) return;
  const bool finite = std::isfinite(static_cast<long double>(value));
  const std::string allowed = finite || rule.allowed() == kFinite
                                  ? rule.allowed()
                                  : std::string(kFinite) + ", " + rule.allowed();
  checks.Add(path, fmt::format("found {}, allowed is {}", value, allowed));
}

void CheckSpan(const std::string& path, const google::protobuf::Duration& value,
               const v1::FieldRule& rule, FieldChecks& checks) {
  if (!rule.has_allowed()) return checks.Time(path, value);
  const Range range = ParseRange(rule.allowed());
  if (Contains(range, value.seconds() + static_cast<long double>(value.nanos()) / 1e9L)) return;
  const double seconds = static_cast<double>(value.seconds()) + value.nanos() / 1e9;
  checks.Add(path, fmt::format("found {}s, allowed is {}", seconds, rule.allowed()));
}

// ---- one field

// How many there are and, of messages, each for itself.
void CheckItems(const Message& message, const FieldDescriptor& field, const std::string& path,
                FieldChecks& checks) {
  const Reflection& in = *message.GetReflection();
  const int size = in.FieldSize(message, &field);
  const v1::FieldRule rule = RuleOf(field, "").value();
  if (rule.has_allowed() && !Contains(ParseRange(rule.allowed()), size)) {
    checks.Add(path, fmt::format("found {} items, allowed are {}", size, rule.allowed()));
  }
  for (int i = 0; IsListOfMessages(field) && i < size; ++i) {
    CheckFields(in.GetRepeatedMessage(message, &field, i), fmt::format("{}[{}].", path, i), "",
                checks);
  }
}

void CheckValue(const Message& message, const FieldDescriptor& field, const std::string& path,
                const std::string& variant, const v1::FieldRule& rule, FieldChecks& checks) {
  const Reflection& in = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckRange(path, in.GetDouble(message, &field), rule, checks);
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckRange(path, in.GetInt32(message, &field), rule, checks);
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckRange(path, in.GetUInt32(message, &field), rule, checks);
    case FieldDescriptor::CPPTYPE_UINT64:
      return CheckRange(path, in.GetUInt64(message, &field), rule, checks);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = in.GetEnumValue(message, &field);
      const bool known = field.enum_type()->FindValueByNumber(value) != nullptr;
      return checks.Known(path, known, value, WordsOf(*field.enum_type()));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!IsDuration(field)) {
        return CheckFields(in.GetMessage(message, &field), path + ".", VariantIn(field, variant),
                           checks);
      }
      return CheckSpan(
          path, static_cast<const google::protobuf::Duration&>(in.GetMessage(message, &field)),
          rule, checks);
    default:  // texts and bools have no range
      return;
  }
}

// What a job file would say, as protobuf's text format has it.
std::string TextOf(const FieldDescriptor& field, const std::string& said) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) return '"' + said + '"';
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return PrefixOf(*field.enum_type()) + absl::AsciiStrToUpper(said);
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return said;
  TACTUS_CHECK(IsDuration(field));
  const Duration duration = runtime::ParseDuration(said).value();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return fmt::format("{{seconds: {} nanos: {}}}", whole.count(), (duration - whole).count());
}

// Whether a message that is not given has something to say, whatever was chosen around it.
bool HasDefaults(const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.is_repeated() || field.real_containing_oneof() != nullptr) continue;
    for (const v1::FieldRule& rule : field.options().GetRepeatedExtension(v1::field)) {
      if (rule.of().empty() && rule.has_default_value()) return true;
    }
    const Descriptor* below = field.message_type();
    if (below != nullptr && HasDefaults(*below)) return true;
  }
  return false;
}

}  // namespace

void CheckFields(const Message& message, const std::string& path, const std::string& chosen,
                 FieldChecks& checks) {
  const std::string variant = VariantOf(message, chosen);
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string place = path + field.name();
    if (field.is_repeated()) {
      CheckItems(message, field, place, checks);
      continue;
    }
    if (!message.GetReflection()->HasField(message, &field)) continue;
    if (const std::optional<v1::FieldRule> rule = RuleOf(field, variant)) {
      CheckValue(message, field, place, variant, *rule, checks);
    } else {
      RefuseVariant(place, field, variant, checks);
    }
  }
}

void FillDefaults(const std::string& chosen, Message* message) {
  const std::string variant = VariantOf(*message, chosen);
  const Reflection& in = *message->GetReflection();
  const Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::optional<v1::FieldRule> rule =
        RuleOf(field, field.name() == kPolicy ? chosen : variant);
    for (int j = 0; IsListOfMessages(field) && j < in.FieldSize(*message, &field); ++j) {
      FillDefaults("", in.MutableRepeatedMessage(message, &field, j));
    }
    if (field.is_repeated() || !rule) continue;
    const bool given = in.HasField(*message, &field);
    if (!given && rule->has_default_value()) {
      TACTUS_CHECK(TextFormat::ParseFieldValueFromString(TextOf(field, rule->default_value()),
                                                         &field, message));
    }
    if (field.message_type() == nullptr || IsDuration(field)) continue;
    const bool chosen_here = field.real_containing_oneof() != nullptr;
    if (given || (!chosen_here && HasDefaults(*field.message_type()))) {
      FillDefaults(VariantIn(field, variant), in.MutableMessage(message, &field));
    }
  }
}

void DropForeign(const std::string& chosen, const std::set<std::string>& kept, Message* message) {
  const std::string variant = VariantOf(*message, chosen);
  const Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool foreign = field.name() != kPolicy && !RuleOf(field, variant);
    if (foreign && !kept.contains(field.name())) {
      message->GetReflection()->ClearField(message, &field);
    }
  }
}

std::vector<std::string> VariantsOf(const Descriptor& message) {
  std::vector<std::string> variants;
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->name() != kPolicy) AddVariants(*message.field(i), variants);
  }
  return variants;
}

std::string WordOf(const EnumDescriptor& type, int value) {
  const auto* found = value == 0 ? nullptr : type.FindValueByNumber(value);
  if (found == nullptr) return "";
  return absl::AsciiStrToLower(found->name().substr(PrefixOf(type).size()));
}

}  // namespace tactus::spec
