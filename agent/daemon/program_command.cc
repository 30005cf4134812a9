#include "agent/daemon/program_command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::agent {
namespace {

constexpr std::string_view kPath = "PATH=";

bool IsProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> FoldersOfPath(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(kPath)) return absl::StrSplit(variable.substr(kPath.size()), ':');
  }
  return {"/usr/local/bin", "/usr/bin", "/bin"};
}

bool LeadsOut(const std::string& name) {
  const std::filesystem::path path(name);
  return name.empty() || path.is_absolute() ||
         std::ranges::any_of(path, [](const auto& part) { return part == ".."; });
}

absl::Status Put(const std::string& file, const std::filesystem::path& place) {
  std::error_code error;
  std::filesystem::create_directories(place.parent_path(), error);
  if (!error) std::filesystem::copy_file(file, place, error);
  if (!error) std::filesystem::permissions(place, std::filesystem::perms::owner_all, error);
  return error ? runtime::FileError(error.value(), place.string(), "cannot be written")
               : absl::OkStatus();
}

// Of its files' names and paths, which have their content's hash in them where they were uploaded.
std::string FolderName(const tactus::v1::Program& program) {
  runtime::Sha256 hash;
  for (int i = 0; i < program.files_size(); ++i) {
    hash.Update(program.files(i) + '\n' + program.names(i) + '\n');
  }
  return "program-" + hash.Finish().substr(0, 16);
}

// Whole or not at all: it gets its name when all files are in it.
absl::StatusOr<std::string> PutFiles(const tactus::v1::Program& program,
                                     const std::string& job_folder) {
  if (program.names_size() != program.files_size()) {
    return absl::InvalidArgumentError("program.names: one for each of program.files is wanted");
  }
  const std::string folder = job_folder + "/" + FolderName(program);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return folder;
  const std::string beside = folder + ".partial";
  std::filesystem::remove_all(beside, error);
  for (int i = 0; i < program.files_size(); ++i) {
    const std::string& name = program.names(i);
    if (LeadsOut(name)) {
      return absl::InvalidArgumentError("program.names: '" + name + "' leads out of the folder");
    }
    if (!std::filesystem::is_regular_file(program.files(i), error)) {
      return absl::NotFoundError("program.files: '" + program.files(i) +
                                 "' is no file on this node");
    }
    if (absl::Status s = Put(program.files(i), std::filesystem::path(beside) / name); !s.ok()) {
      return s;
    }
  }
  std::filesystem::rename(beside, folder, error);
  if (error) return runtime::FileError(error.value(), folder, "cannot be made");
  return folder;
}

}  // namespace

absl::StatusOr<ProgramCommand> PrepareProgram(const tactus::v1::Program& program,
                                              const std::string& job_folder,
                                              const std::vector<std::string>& environment) {
  std::vector<std::string> words(program.command().begin(), program.command().end());
  if (words.empty()) return absl::InvalidArgumentError("program.command: is missing");
  absl::StatusOr<std::string> directory = program.directory();
  if (!program.files().empty()) directory = PutFiles(program, job_folder);
  if (!directory.ok()) return directory.status();
  const std::filesystem::path folder = *directory;
  std::error_code ignored;
  if (!folder.is_absolute() || !std::filesystem::is_directory(folder, ignored)) {
    return absl::NotFoundError("program.directory: '" + *directory + "' is no folder on this node");
  }
  std::vector<std::string> places = FoldersOfPath(environment);
  if (words.front().find('/') != std::string::npos) places = {""};
  for (const std::string& place : places) {
    const std::filesystem::path path = folder / place / words.front();
    if (!IsProgram(path)) continue;
    words.front() = path.lexically_normal().string();
    return ProgramCommand{.arguments = std::move(words), .directory = *std::move(directory)};
  }
  return absl::NotFoundError("program.command: '" + words.front() +
                             "' is no program that can be run on this node");
}

}  // namespace tactus::agent
