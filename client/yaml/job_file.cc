#include "client/yaml/job_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/yaml/message_reader.h"

namespace tactus::client {
namespace {

// A loss is the path of a module where it looks like one; else it is the name of a built-in loss.
bool IsLossPath(const std::string& loss) {
  return loss.find('/') != std::string::npos || loss.find('.') != std::string::npos;
}

void Resolve(const std::string& folder, std::string* path) {
  if (path->empty() || path->front() == '/' || path->starts_with(kBlobPrefix)) return;
  *path = (std::filesystem::path(folder) / *path).lexically_normal().string();
}

void ResolvePaths(const std::string& folder, v1::JobSpec* spec) {
  if (spec->has_model()) {
    v1::Model* model = spec->mutable_model();
    if (model->has_torchscript()) Resolve(folder, model->mutable_torchscript());
    if (IsLossPath(model->loss())) Resolve(folder, model->mutable_loss());
  }
  if (!spec->has_data()) return;
  v1::Data* data = spec->mutable_data();
  if (data->has_text()) Resolve(folder, data->mutable_text());
  if (data->has_cifar()) Resolve(folder, data->mutable_cifar());
  v1::FilePair* pair = data->has_idx()     ? data->mutable_idx()
                       : data->has_numpy() ? data->mutable_numpy()
                                           : nullptr;
  if (pair == nullptr) return;
  Resolve(folder, pair->mutable_inputs());
  Resolve(folder, pair->mutable_targets());
}

}  // namespace

JobFile ParseJobFile(std::string_view text, const std::vector<Override>& overrides,
                     const std::string& folder) {
  YamlFile yaml = ParseYamlFile(text, overrides);
  JobFile file{.spec = {}, .errors = std::move(yaml.errors)};
  if (file.errors.empty() && yaml.root.kind == YamlValue::Kind::kNull) {
    file.errors.push_back("the file is empty; a job has at least name, model, data and stop");
  }
  if (!file.errors.empty()) return file;
  file.errors = ErrorTexts(ReadMessage(yaml.root, &file.spec));
  if (file.errors.empty()) ResolvePaths(folder, &file.spec);
  return file;
}

JobFile ReadJobFile(const std::string& path, const std::vector<Override>& overrides) {
  const FileText file = ReadYamlText(path, "a job file");
  if (!file.error.empty()) return {.spec = {}, .errors = {file.error}};
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  const std::filesystem::path folder =
      path == "-" ? here : (here / path).lexically_normal().parent_path();
  return ParseJobFile(file.text, overrides, folder.string());
}

}  // namespace tactus::client
