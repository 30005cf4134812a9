// Plain structs as protobuf messages, and back, over the lists of base/fields.h: a field's key is
// the name of the message's field. Names are looked up once, when a MessageFields is made; from
// then on a field costs a call of protobuf's reflection, a few nanoseconds.
//
//   static const MessageFields<policies::Plan, v1::Plan> kPlan;
//   kPlan.Write(plan, proto);

#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

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

// A struct's field in its message.
struct MessageField {
  const google::protobuf::FieldDescriptor* field = nullptr;  // null: the message says it otherwise
  std::vector<MessageField> fields{};  // of a struct within, in the order of its list
};

// What a struct and its message do not say by one name, and conversions say by hand.
struct Apart {
  std::vector<std::string_view> ours{};    // keys of the struct's list
  std::vector<std::string_view> theirs{};  // fields of the message
};

// What a field of type T is in a message.
template <typename T>
struct MessageType {
  using Type = google::protobuf::FieldDescriptor;
  static constexpr bool kRepeated = false;
  using Value = T;
  static constexpr Type::CppType kType = std::is_same_v<T, bool>            ? Type::CPPTYPE_BOOL
                                         : std::is_same_v<T, double>        ? Type::CPPTYPE_DOUBLE
                                         : std::is_same_v<T, std::uint32_t> ? Type::CPPTYPE_UINT32
                                         : std::is_same_v<T, std::uint64_t> ? Type::CPPTYPE_UINT64
                                         : std::is_enum_v<T> || std::is_same_v<T, std::string>
                                             ? Type::CPPTYPE_STRING
                                             : Type::CPPTYPE_MESSAGE;
};
template <typename Tag>
struct MessageType<Id<Tag>> : MessageType<std::uint64_t> {};
template <typename T>
struct MessageType<std::optional<T>> : MessageType<T> {};
template <typename T>
struct MessageType<std::vector<T>> : MessageType<T> {
  static constexpr bool kRepeated = true;
};

// Finds the message's field of each field of a struct.
class MessageBinder {
 public:
  // Stops the process where struct and message do not have the same fields, but for those apart:
  // one of them was forgotten.
  template <typename T>
  static std::vector<MessageField> Bind(const google::protobuf::Descriptor& message,
                                        const Apart& apart = {}) {
    MessageBinder binder(message, apart);
    const T record{};
    Fields(binder, record);
    binder.RequireAll();
    return std::move(binder.bound_);
  }

  template <typename T>
  void operator()(const char* key, const T&) {
    using Type = MessageType<T>;
    MessageField bound{.field = Find(key, Type::kType, Type::kRepeated)};
    if constexpr (Type::kType == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (bound.field != nullptr) {
        bound.fields = Bind<typename Type::Value>(*bound.field->message_type());
      }
    }
    bound_.push_back(std::move(bound));
  }
  template <typename T>
  void Inline(const T& record) {
    Fields(*this, record);
  }

 private:
  MessageBinder(const google::protobuf::Descriptor& message, const Apart& apart)
      : message_(message), apart_(apart) {}

  const google::protobuf::FieldDescriptor* Find(const std::string& key,
                                                google::protobuf::FieldDescriptor::CppType type,
                                                bool repeated) const;
  void RequireAll() const;

  const google::protobuf::Descriptor& message_;
  const Apart& apart_;
  std::vector<MessageField> bound_;
};

// Sets the fields of a message from those of a struct.
class MessageWriter {
 public:
  // Both outlive it.
  MessageWriter(const std::vector<MessageField>& fields, google::protobuf::Message& to)
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
  template <typename T>
  void Write(const MessageField& bound, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      reflection_.SetString(&to_, bound.field, std::string(NameOf(value)));
    } else if constexpr (std::is_same_v<T, bool>) {
      reflection_.SetBool(&to_, bound.field, value);
    } else if constexpr (std::is_same_v<T, double>) {
      reflection_.SetDouble(&to_, bound.field, value);
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      reflection_.SetUInt32(&to_, bound.field, value);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      reflection_.SetUInt64(&to_, bound.field, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      reflection_.SetString(&to_, bound.field, value);
    } else {
      MessageWriter writer(bound.fields, *reflection_.MutableMessage(&to_, bound.field));
      Fields(writer, value);
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
    for (const T& item : items) Add(bound, item);
  }
  template <typename T>
  void Add(const MessageField& bound, const T& item) {
    if constexpr (std::is_same_v<T, double>) {
      reflection_.AddDouble(&to_, bound.field, item);
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      reflection_.AddUInt32(&to_, bound.field, item);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      reflection_.AddUInt64(&to_, bound.field, item);
    } else if constexpr (std::is_same_v<T, std::string>) {
      reflection_.AddString(&to_, bound.field, item);
    } else {
      MessageWriter writer(bound.fields, *reflection_.AddMessage(&to_, bound.field));
      Fields(writer, item);
    }
  }

  const MessageField* next_;
  google::protobuf::Message& to_;
  const google::protobuf::Reflection& reflection_;
};

// Sets the fields of a struct from those of a message; one that is not set is zero or empty.
class MessageReader {
 public:
  // Both outlive it.
  MessageReader(const std::vector<MessageField>& fields, const google::protobuf::Message& from)
      : next_(fields.data()), from_(from), reflection_(*from.GetReflection()) {}

  template <typename T>
  void operator()(const char*, T& value) {
    const MessageField& bound = *next_++;
    if (bound.field != nullptr) Read(*bound.field, value);
  }
  template <typename T>
  void Inline(T& record) {
    Fields(*this, record);
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void Read(const Field& field, bool& value) { value = reflection_.GetBool(from_, &field); }
  void Read(const Field& field, double& value) { value = reflection_.GetDouble(from_, &field); }
  void Read(const Field& field, std::uint32_t& value) {
    value = reflection_.GetUInt32(from_, &field);
  }
  void Read(const Field& field, std::uint64_t& value) {
    value = reflection_.GetUInt64(from_, &field);
  }
  void Read(const Field& field, std::string& value) {
    value = reflection_.GetString(from_, &field);
  }
  void Read(const Field& field, std::vector<std::string>& items) {
    const auto found = reflection_.GetRepeatedFieldRef<std::string>(from_, &field);
    items.assign(found.begin(), found.end());
  }

  const MessageField* next_;
  const google::protobuf::Message& from_;
  const google::protobuf::Reflection& reflection_;
};

// The way between struct T and its message. Any thread.
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

// Of a variant, whose alternatives are fields of the message's only oneof by their kKind. The oneof
// may have more.
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
  static bool ReadIf(const MessageField& bound, const google::protobuf::FieldDescriptor* set,
                     const Message& from, std::optional<std::variant<Ts...>>& to) {
    if (set != bound.field) return false;
    MessageReader reader(bound.fields, from.GetReflection()->GetMessage(from, set));
    Fields(reader, to.emplace().template emplace<T>());
    return true;
  }

  const std::array<MessageField, sizeof...(Ts)> alternatives_;
};

}  // namespace tactus::runtime
