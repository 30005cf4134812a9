// Plain structs as protobuf messages, and back, over the lists of base/fields.h: a field's key is
// the name of the message's field. Names are looked up once, when a MessageFields is made; from
// then on a field costs a call of protobuf's reflection, a few nanoseconds.
//
//   static const MessageFields<policies::Plan, v1::Plan> kFields;
//   kFields.Write(plan, proto);

#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/id.h"

namespace tactus::runtime {

namespace protobuf = google::protobuf;

// A struct's field in its message.
struct MessageField {
  const protobuf::FieldDescriptor* field = nullptr;  // null: the message says it otherwise
  std::vector<MessageField> fields{};                // of a struct within, in the order of its list
};

// What a struct and its message do not say by one name, and conversions say by hand.
struct Apart {
  std::vector<std::string_view> ours{};    // keys of the struct's list
  std::vector<std::string_view> theirs{};  // fields of the message
};

// How a message has a value of type T. Structs are messages, enums are their names.
template <typename T>
struct MessageValue {
  static constexpr auto kType = std::is_enum_v<T> ? protobuf::FieldDescriptor::CPPTYPE_STRING
                                                  : protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
};
template <auto type, auto get, auto set, auto add>
struct ScalarValue {
  static constexpr auto kType = type;
  static constexpr auto kGet = get;
  static constexpr auto kSet = set;
  static constexpr auto kAdd = add;
};
template <>
struct MessageValue<bool>
    : ScalarValue<protobuf::FieldDescriptor::CPPTYPE_BOOL, &protobuf::Reflection::GetBool,
                  &protobuf::Reflection::SetBool, &protobuf::Reflection::AddBool> {};
template <>
struct MessageValue<double>
    : ScalarValue<protobuf::FieldDescriptor::CPPTYPE_DOUBLE, &protobuf::Reflection::GetDouble,
                  &protobuf::Reflection::SetDouble, &protobuf::Reflection::AddDouble> {};
template <>
struct MessageValue<std::uint32_t>
    : ScalarValue<protobuf::FieldDescriptor::CPPTYPE_UINT32, &protobuf::Reflection::GetUInt32,
                  &protobuf::Reflection::SetUInt32, &protobuf::Reflection::AddUInt32> {};
template <>
struct MessageValue<std::uint64_t>
    : ScalarValue<protobuf::FieldDescriptor::CPPTYPE_UINT64, &protobuf::Reflection::GetUInt64,
                  &protobuf::Reflection::SetUInt64, &protobuf::Reflection::AddUInt64> {};
template <>
struct MessageValue<std::string>
    : ScalarValue<protobuf::FieldDescriptor::CPPTYPE_STRING, &protobuf::Reflection::GetString,
                  &protobuf::Reflection::SetString, &protobuf::Reflection::AddString> {};

// What a field of type T is one of, or a list of.
template <typename T>
struct MessageItem {
  using Type = T;
  static constexpr bool kRepeated = false;
};
template <typename Tag>
struct MessageItem<Id<Tag>> : MessageItem<std::uint64_t> {};
template <typename T>
struct MessageItem<std::optional<T>> : MessageItem<T> {};
template <typename T>
struct MessageItem<std::vector<T>> : MessageItem<T> {
  static constexpr bool kRepeated = true;
};

// Finds the message's field of each field of a struct.
class MessageBinder {
 public:
  // Stops the process where struct and message do not have the same fields of the same types, but
  // for those apart: one was forgotten.
  template <typename T>
  static std::vector<MessageField> Bind(const protobuf::Descriptor& message,
                                        const Apart& apart = {}) {
    MessageBinder binder(message, apart);
    const T record{};
    Fields(binder, record);
    binder.RequireAll();
    return std::move(binder.bound_);
  }

  template <typename T>
  void operator()(const char* key, const T&) {
    using Item = typename MessageItem<T>::Type;
    constexpr auto kType = MessageValue<Item>::kType;
    MessageField bound{.field = Find(key, kType, MessageItem<T>::kRepeated)};
    if constexpr (kType == protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (bound.field != nullptr) bound.fields = Bind<Item>(*bound.field->message_type());
    }
    bound_.push_back(std::move(bound));
  }
  template <typename T>
  void Inline(const T& record) {
    Fields(*this, record);
  }

 private:
  MessageBinder(const protobuf::Descriptor& message, const Apart& apart)
      : message_(message), apart_(apart) {}

  const protobuf::FieldDescriptor* Find(const std::string& key,
                                        protobuf::FieldDescriptor::CppType type,
                                        bool repeated) const;
  void RequireAll() const;

  const protobuf::Descriptor& message_;
  const Apart& apart_;
  std::vector<MessageField> bound_;
};

// Sets the fields of a message, which is empty, from those of a struct.
class MessageWriter {
 public:
  // Both outlive it.
  MessageWriter(const std::vector<MessageField>& fields, protobuf::Message& to)
      : next_(fields.data()), to_(to), reflection_(*to.GetReflection()) {}

  template <typename T>
  void operator()(const char*, const T& value) {
    const MessageField& bound = *next_++;
    if (bound.field != nullptr) Write(bound, value);
  }
  template <typename T>
  void Inline(const T& record) {
    Fields(*this, record);
  }

 private:
  // Sets the field, or adds to it where it is a list.
  template <typename T>
  void Write(const MessageField& bound, const T& value) {
    const bool repeated = bound.field->is_repeated();
    if constexpr (std::is_enum_v<T>) {
      Write(bound, std::string(NameOf(value)));
    } else if constexpr (MessageValue<T>::kType == protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      MessageWriter writer(bound.fields, repeated ? *reflection_.AddMessage(&to_, bound.field)
                                                  : *reflection_.MutableMessage(&to_, bound.field));
      Fields(writer, value);
    } else {
      const auto put = repeated ? MessageValue<T>::kAdd : MessageValue<T>::kSet;
      (reflection_.*put)(&to_, bound.field, value);
    }
  }
  template <typename Tag>
  void Write(const MessageField& bound, const Id<Tag>& id) {
    Write(bound, id.value);
  }
  template <typename T>
  void Write(const MessageField& bound, const std::optional<T>& value) {
    if (value) Write(bound, *value);
  }
  template <typename T>
  void Write(const MessageField& bound, const std::vector<T>& items) {
    for (const T& item : items) Write(bound, item);
  }

  const MessageField* next_;
  protobuf::Message& to_;
  const protobuf::Reflection& reflection_;
};

// Sets the fields of a struct from those of a message; one that is not set is zero or empty.
class MessageReader {
 public:
  // Both outlive it.
  MessageReader(const std::vector<MessageField>& fields, const protobuf::Message& from)
      : next_(fields.data()), from_(from), reflection_(*from.GetReflection()) {}

  template <typename T>
  void operator()(const char*, T& value) {
    Read(*next_++, value);
  }
  template <typename T>
  void Inline(T& record) {
    Fields(*this, record);
  }

 private:
  template <typename T>
  void Read(const MessageField& bound, T& value) {
    if constexpr (MessageValue<T>::kType == protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      MessageReader reader(bound.fields, reflection_.GetMessage(from_, bound.field));
      Fields(reader, value);
    } else {
      value = (reflection_.*MessageValue<T>::kGet)(from_, bound.field);
    }
  }
  template <typename T>
  void Read(const MessageField& bound, std::optional<T>& value) {
    if (reflection_.HasField(from_, bound.field)) Read(bound, value.emplace());
  }
  void Read(const MessageField& bound, std::vector<std::string>& items) {
    for (int i = 0; i < reflection_.FieldSize(from_, bound.field); ++i) {
      items.push_back(reflection_.GetRepeatedString(from_, bound.field, i));
    }
  }
  void Read(const MessageField& bound, std::vector<std::uint32_t>& items) {
    for (int i = 0; i < reflection_.FieldSize(from_, bound.field); ++i) {
      items.push_back(reflection_.GetRepeatedUInt32(from_, bound.field, i));
    }
  }

  const MessageField* next_;
  const protobuf::Message& from_;
  const protobuf::Reflection& reflection_;
};

// The way from struct T to its message. Any thread.
template <typename T, typename Message>
class MessageFields {
 public:
  explicit MessageFields(const Apart& apart = {})
      : fields_(MessageBinder::Bind<T>(*Message::descriptor(), apart)) {}

  // To a message that is empty.
  void Write(const T& from, Message& to) const {
    MessageWriter writer(fields_, to);
    Fields(writer, from);
  }

 private:
  const std::vector<MessageField> fields_;
};

// Of a variant, to and from the fields of the message's only oneof by their kKind; the oneof may
// have more.
template <typename... Ts, typename Message>
class MessageFields<std::variant<Ts...>, Message> {
 public:
  MessageFields() : alternatives_{Bind<Ts>()...} {}

  // To a message that is empty.
  void Write(const std::variant<Ts...>& from, Message& to) const {
    const MessageField& bound = alternatives_[from.index()];
    MessageWriter writer(bound.fields, *to.GetReflection()->MutableMessage(&to, bound.field));
    std::visit([&writer](const auto& one) { Fields(writer, one); }, from);
  }

  // Empty: none of the alternatives is set.
  std::optional<std::variant<Ts...>> Read(const Message& from) const {
    std::optional<std::variant<Ts...>> to;
    const auto* const set =
        from.GetReflection()->GetOneofFieldDescriptor(from, Message::descriptor()->oneof_decl(0));
    std::size_t i = 0;
    static_cast<void>((ReadIf<Ts>(alternatives_[i++], set, from, to) || ...));
    return to;
  }

 private:
  template <typename T>
  static MessageField Bind() {
    const auto* const field = Message::descriptor()->FindFieldByName(kKind<T>);
    return {.field = field, .fields = MessageBinder::Bind<T>(*field->message_type())};
  }
  template <typename T>
  static bool ReadIf(const MessageField& bound, const protobuf::FieldDescriptor* set,
                     const Message& from, std::optional<std::variant<Ts...>>& to) {
    if (set != bound.field) return false;
    MessageReader reader(bound.fields, from.GetReflection()->GetMessage(from, set));
    Fields(reader, to.emplace().template emplace<T>());
    return true;
  }

  const std::array<MessageField, sizeof...(Ts)> alternatives_;
};

}  // namespace tactus::runtime
