#include "client/job_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <system_error>
#include <utility>

#include "client/message_reader.h"
#include "client/yaml_tree.h"

namespace tactus::client {
namespace {

// A loss is the path of a module where it looks like one; else it is the name of a built-in loss.
bool IsLossPath(const std::string& loss) {
  return loss.find('/') != std::string::npos || loss.find('.') != std::string::npos;
}

void MakeAbsolute(const std::string& folder, std::string* path) {
  if (path->empty() || path->front() == '/') return;
  *path = (std::filesystem::path(folder) / *path).lexically_normal().string();
}

void MakePathsAbsolute(const std::string& folder, v1::JobSpec* spec) {
  if (spec->has_model()) {
    v1::Model* model = spec->mutable_model();
    if (model->has_torchscript()) MakeAbsolute(folder, model->mutable_torchscript());
    if (IsLossPath(model->loss())) MakeAbsolute(folder, model->mutable_loss());
  }
  if (!spec->has_data()) return;
  v1::Data* data = spec->mutable_data();
  if (data->has_text()) MakeAbsolute(folder, data->mutable_text());
  if (data->has_cifar()) MakeAbsolute(folder, data->mutable_cifar());
  v1::FilePair* pair = data->has_idx()     ? data->mutable_idx()
                       : data->has_numpy() ? data->mutable_numpy()
                                           : nullptr;
  if (pair == nullptr) return;
  MakeAbsolute(folder, pair->mutable_inputs());
  MakeAbsolute(folder, pair->mutable_targets());
}

// Lines refer to the file, so values from the command line have none.
void ForgetLines(YamlValue* value) {
  value->line = 0;
  for (YamlValue& item : value->items) ForgetLines(&item);
  for (YamlEntry& entry : value->entries) {
    entry.line = 0;
    ForgetLines(&entry.value);
  }
}

// Returns what is wrong, or an empty string.
std::string Apply(const Override& change, YamlValue* root) {
  YamlDocument value = ParseYaml(change.value);
  std::string problem = value.error;
  if (problem.empty()) {
    ForgetLines(&value.root);
    problem = SetYamlPath(change.path, std::move(value.root), root);
  }
  return problem.empty() ? "" : "--set " + change.path + ": " + problem;
}

struct FileText {
  std::string text;
  std::string error;
};

// Reads one byte more than is allowed, so that ParseYaml sees that it is too much.
std::string ReadBounded(std::istream& in) {
  std::string text(kYamlBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

FileText ReadText(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return {"", "a folder; expected a job file"};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return {"", errno == 0 ? "cannot be opened" : std::strerror(errno)};
  FileText file = {ReadBounded(in), ""};
  if (in.bad()) file.error = "cannot be read";
  return file;
}

}  // namespace

bool ParseOverride(const std::string& text, Override* parsed) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  *parsed = {text.substr(0, equals), text.substr(equals + 1)};
  return true;
}

JobFile ParseJobFile(std::string_view text, const std::vector<Override>& overrides,
                     const std::string& folder) {
  JobFile file;
  YamlDocument document = ParseYaml(text);
  if (!document.error.empty()) {
    file.errors.push_back(document.error);
    return file;
  }
  for (const Override& change : overrides) {
    const std::string problem = Apply(change, &document.root);
    if (!problem.empty()) file.errors.push_back(problem);
  }
  if (document.root.kind == YamlValue::Kind::kNull) {
    file.errors.push_back("the file is empty; a job has at least name, model, data and stop");
  }
  if (!file.errors.empty()) return file;
  file.errors = ReadMessage(document.root, &file.spec);
  if (file.errors.empty()) MakePathsAbsolute(folder, &file.spec);
  return file;
}

JobFile ReadJobFile(const std::string& path, const std::vector<Override>& overrides) {
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  if (path == "-") return ParseJobFile(ReadBounded(std::cin), overrides, here.string());
  const FileText file = ReadText(path);
  if (!file.error.empty()) return {.spec = {}, .errors = {file.error}};
  const std::filesystem::path folder = (here / path).lexically_normal().parent_path();
  return ParseJobFile(file.text, overrides, folder.string());
}

}  // namespace tactus::client
