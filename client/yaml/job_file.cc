#include "client/yaml/job_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/yaml/message_reader.h"
#include "runtime/job_files.h"

namespace tactus::client {
namespace {

// As they stand beside each other, so that a program finds its parts.
void NameFilesOfProgram(v1::JobSpec* spec) {
  if (!spec->has_program() || !spec->program().names().empty()) return;
  v1::Program& program = *spec->mutable_program();
  for (const std::string& file : program.files()) {
    const std::filesystem::path path = std::filesystem::path(file).lexically_normal();
    program.add_names(path.is_absolute() ? path.filename().string() : path.string());
  }
}

void ResolvePaths(const std::string& folder, v1::JobSpec* spec) {
  NameFilesOfProgram(spec);
  for (const auto& [field, file] : runtime::FilesOf(*spec)) {
    if (file.empty() || file.front() == '/' || file.starts_with(runtime::kUploaded)) continue;
    runtime::SetFile(*spec, field,
                     (std::filesystem::path(folder) / file).lexically_normal().string());
  }
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

JobText ReadJobText(const std::string& path) {
  FileText file = ReadYamlText(path, "a job file");
  if (!file.error.empty()) return {.error = std::move(file.error)};
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  const std::filesystem::path folder =
      path == "-" ? here : (here / path).lexically_normal().parent_path();
  return {.text = std::move(file.text), .folder = folder.string()};
}

JobFile ReadJobFile(const std::string& path, const std::vector<Override>& overrides) {
  const JobText file = ReadJobText(path);
  if (!file.error.empty()) return {.spec = {}, .errors = {file.error}};
  return ParseJobFile(file.text, overrides, file.folder);
}

}  // namespace tactus::client
