#include "client/verbs/sweep_grid.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "client/text/text.h"

namespace tactus::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t kLabelMax = 63;

bool IsPlain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' && depth <= 0 && quote == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Paths of the fields that are set and are no message that has fields of its own, whose last word
// is `name`.
void Find(const Message& message, const std::string& name, const std::string& before,
          std::vector<std::string>* found) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = before + std::string(field->name());
    if (field->name() == name) found->push_back(path);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    Find(message.GetReflection()->GetMessage(message, field), name, path + ".", found);
  }
}

}  // namespace

std::string ParseSwept(const std::string& text, SweptField* swept) {
  Override parsed;
  const bool read = ParseOverride(text, &parsed);
  if (read) *swept = {.path = parsed.path, .values = Split(parsed.value)};
  bool whole = read;
  for (const std::string& value : swept->values) whole = whole && !value.empty();
  if (whole) return "";
  return "--over: found \"" + Printable(text) +
         "\", allowed is FIELD=VALUE,VALUE such as learning_rate=0.01,0.03";
}

std::string FindField(const v1::JobSpec& spec, SweptField* swept) {
  const bool whole = swept->path.find('.') != std::string::npos ||
                     v1::JobSpec::descriptor()->FindFieldByName(swept->path) != nullptr;
  if (whole) return "";
  std::vector<std::string> found;
  Find(spec, swept->path, "", &found);
  if (found.size() == 1) {
    swept->path = found[0];
    return "";
  }
  const std::string shown = "--over: " + Printable(swept->path);
  if (found.empty()) {
    return shown +
           " is not set in the job file; give its whole path, such as optimizer.sgd.learning_rate";
  }
  std::string paths;
  for (const std::string& path : found) paths += (paths.empty() ? "" : " and ") + path;
  return shown + " may be " + paths + "; give the whole path";
}

std::vector<std::vector<Override>> Grid(const std::vector<SweptField>& fields) {
  std::vector<std::vector<Override>> points = {{}};
  for (const SweptField& field : fields) {
    std::vector<std::vector<Override>> longer;
    for (const std::vector<Override>& point : points) {
      for (const std::string& value : field.values) {
        longer.push_back(point);
        longer.back().push_back({.path = field.path, .value = value});
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string LabelOf(const std::string& value) {
  std::string label;
  for (const char c : value.substr(0, kLabelMax)) {
    label += IsPlain(c) || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  // Both ends are letters or digits.
  while (!label.empty() && !IsPlain(label.back())) label.pop_back();
  const auto first = std::find_if(label.begin(), label.end(), IsPlain);
  return std::string(first, label.end());
}

}  // namespace tactus::client
