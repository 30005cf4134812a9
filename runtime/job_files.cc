#include "runtime/job_files.h"

#include <functional>

#include "base/check.h"
#include "tactus/v1/options.pb.h"

namespace tactus::runtime {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A text of a message, or one of a list of them.
struct Text {
  Message& message;
  const FieldDescriptor& field;
  int index = -1;  // in a list

  std::string Get() const {
    const auto& in = *message.GetReflection();
    return index < 0 ? in.GetString(message, &field) : in.GetRepeatedString(message, &field, index);
  }
  void Set(const std::string& text) const {
    const auto& in = *message.GetReflection();
    if (index < 0) return in.SetString(&message, &field, text);
    in.SetRepeatedString(&message, &field, index, text);
  }
};

using Visit = std::function<void(const std::string& field, const Text& text)>;

bool NamesFile(const FieldDescriptor& field, const std::string& text) {
  switch (field.options().GetExtension(v1::file)) {
    case v1::NAMES_FILE_PATH:
      return true;
    case v1::NAMES_FILE_PATH_OR_WORD:
      return IsFile(text);
    default:
      return false;
  }
}

void VisitText(const std::string& name, const Text& text, const Visit& visit) {
  if (NamesFile(text.field, text.Get())) visit(name, text);
}

void VisitFiles(Message& message, const std::string& path, const Visit& visit) {
  const auto& in = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  in.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = path + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && field->is_repeated()) {
      for (int i = 0; i < in.FieldSize(message, field); ++i) {
        VisitText(name + "[" + std::to_string(i) + "]", {message, *field, i}, visit);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      VisitText(name, {message, *field}, visit);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      VisitFiles(*in.MutableMessage(&message, field), name + ".", visit);
    }
  }
}

}  // namespace

bool IsFile(std::string_view text) {
  return text.starts_with(kUploaded) || text.find_first_of("/.") != std::string_view::npos;
}

std::vector<NamedFile> FilesOf(const v1::JobSpec& spec) {
  std::vector<NamedFile> files;
  v1::JobSpec copy = spec;
  VisitFiles(copy, "", [&files](const std::string& field, const Text& text) {
    files.push_back({.field = field, .file = text.Get()});
  });
  return files;
}

void SetFile(v1::JobSpec& spec, const std::string& field, const std::string& file) {
  bool found = false;
  VisitFiles(spec, "", [&](const std::string& name, const Text& text) {
    if (name != field) return;
    text.Set(file);
    found = true;
  });
  TACTUS_CHECK(found);
}

}  // namespace tactus::runtime
