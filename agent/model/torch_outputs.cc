#include "agent/model/torch_outputs.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "agent/model/torch_module.h"

namespace tactus::model {
namespace {

std::optional<std::size_t> PlaceOf(const std::string& name, std::size_t size) {
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && place < size ? std::optional(place) : std::nullopt;
}

// The names of a named tuple's fields; empty of any other.
std::vector<std::string> FieldsOf(const c10::IValue& tuple) {
  std::vector<std::string> names;
  const auto& schema = tuple.toTuple()->type()->schema();
  if (!schema) return names;
  for (const c10::Argument& argument : schema->arguments()) names.push_back(argument.name());
  return names;
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> KeysOf(const c10::IValue& dict) {
  std::vector<std::string> keys;
  for (const auto& item : dict.toGenericDict()) {
    if (item.key().isString()) keys.push_back(item.key().toStringRef());
  }
  return keys;
}

std::optional<c10::IValue> Find(const c10::IValue& outputs, const std::string& name) {
  if (outputs.isGenericDict()) {
    const auto dict = outputs.toGenericDict();
    for (const auto& item : dict) {
      if (item.key().isString() && item.key().toStringRef() == name) return item.value();
    }
    return std::nullopt;
  }
  if (outputs.isTuple()) {
    const std::vector<std::string> names = FieldsOf(outputs);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return outputs.toTuple()->elements()[i];
    }
    const auto place = PlaceOf(name, outputs.toTuple()->elements().size());
    if (place) return outputs.toTuple()->elements()[*place];
  } else if (outputs.isList()) {
    const auto place = PlaceOf(name, outputs.toListRef().size());
    if (place) return outputs.toListRef()[*place];
  }
  return std::nullopt;
}

}  // namespace

c10::IValue OutputOf(const c10::IValue& outputs, const std::string& name) {
  if (std::optional<c10::IValue> found = Find(outputs, name)) return *std::move(found);
  throw NoSuchOutput("\"" + name + "\" is not among what forward returns, " +
                     DescribeOutputs(outputs));
}

c10::IValue InFloat32(const c10::IValue& outputs) {
  if (outputs.isTensor()) {
    const at::Tensor& tensor = outputs.toTensor();
    return tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
  }
  if (outputs.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : outputs.toTuple()->elements()) {
      elements.push_back(InFloat32(element));
    }
    const auto type = outputs.toTuple()->type();
    if (!type->schema()) return c10::ivalue::Tuple::create(std::move(elements));
    return c10::ivalue::Tuple::createNamed(std::move(elements), type);
  }
  if (outputs.isTensorList()) {
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : outputs.toTensorVector()) {
      tensors.push_back(InFloat32(tensor).toTensor());
    }
    return tensors;
  }
  if (outputs.isGenericDict()) {
    const auto dict = outputs.toGenericDict();
    c10::impl::GenericDict cast(dict.keyType(), dict.valueType());
    for (const auto& item : dict) cast.insert(item.key(), InFloat32(item.value()));
    return cast;
  }
  return outputs;
}

std::string DescribeOutputs(const c10::IValue& outputs) {
  if (outputs.isTensor()) return Describe(outputs.toTensor());
  if (outputs.isGenericDict()) return "a dict of " + Names(KeysOf(outputs));
  if (outputs.isTuple()) {
    const std::vector<std::string> names = FieldsOf(outputs);
    if (!names.empty()) return "a tuple of " + Names(names);
    return "a tuple of " + std::to_string(outputs.toTuple()->elements().size());
  }
  if (outputs.isList()) return "a list of " + std::to_string(outputs.toListRef().size());
  return "a " + outputs.tagKind();
}

}  // namespace tactus::model
