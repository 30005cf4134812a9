#include "agent/daemon/program_command.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/box/beneath.h"
#include "runtime/process.h"
#include "runtime/program_path.h"
#include "runtime/sha256.h"

namespace tactus::agent {
namespace {

constexpr std::string_view kPath = "PATH=";
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;

std::string_view PathOf(const std::vector<std::string>& environment) {
  for (const std::string_view variable : environment) {
    if (variable.starts_with(kPath)) return variable.substr(kPath.size());
  }
  return runtime::kUsualPath;
}

bool LeadsOut(const std::string& name) {
  const std::filesystem::path path(name);
  return name.empty() || path.is_absolute() ||
         std::ranges::any_of(path, [](const auto& part) { return part == ".."; });
}

// What is made for the job is the agent's, and read by the workers' user by its group.
absl::Status GiveTo(int descriptor, const std::optional<box::WorkerUser>& user) {
  const bool given = !user || (::fchown(descriptor, static_cast<uid_t>(-1), user->gid) == 0 &&
                               ::fchmod(descriptor, 0750) == 0);
  return given ? absl::OkStatus() : runtime::FileError(errno, "program", "cannot be given away");
}

absl::Status Copy(int from, int to) {
  for (;;) {
    const ssize_t count = ::sendfile(to, from, nullptr, kCopyBytes);
    if (count == 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR)
      return runtime::FileError(errno, "program", "cannot be copied");
  }
}

// The folders on the way to `name`, each made where it is not there; what is in them is the
// agent's. Returns the last.
absl::StatusOr<Descriptor> MakeFolders(int top, const std::filesystem::path& name,
                                       const ProgramPlace& place) {
  absl::StatusOr<Descriptor> folder = box::OpenBeneath(top, ".", O_RDONLY | O_DIRECTORY);
  for (const std::filesystem::path& part : name.parent_path()) {
    if (!folder.ok()) return folder.status();
    if (part.empty() || part == ".") continue;
    const bool made = ::mkdirat(folder->get(), part.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return runtime::FileError(errno, name.string(), "cannot be made");
    folder = box::OpenBeneath(folder->get(), part.string(), O_RDONLY | O_DIRECTORY);
    if (!folder.ok() || !made) continue;
    if (absl::Status given = GiveTo(folder->get(), place.user); !given.ok()) return given;
  }
  return folder;
}

// Errors as of PrepareProgram.
absl::StatusOr<Descriptor> OpenSource(const std::string& file, const ProgramPlace& place) {
  const bool uploaded =
      !place.blobs.empty() && std::filesystem::path(file).parent_path() == place.blobs;
  if (!uploaded && place.user) {
    return absl::PermissionDeniedError(
        "program.files: '" + file +
        "' is a path of this node, whose workers have a user of their own: only files that are "
        "uploaded come here");
  }
  // A pipe that nobody writes to is not waited for.
  Descriptor source(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found = {};
  if (!source.open() || ::fstat(source.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::NotFoundError("program.files: '" + file + "' is no file on this node");
  }
  if (uploaded) return source;
  const absl::StatusOr<std::string> path = box::PathOf(source.get());
  if (!path.ok()) return path.status();
  for (const std::string& hidden : place.private_places) {
    if (box::IsBeneath(*path, hidden)) {
      return absl::PermissionDeniedError("program.files: '" + file + "' is private to this node");
    }
  }
  return source;
}

absl::Status Put(const std::string& file, int top, const std::string& name,
                 const ProgramPlace& place) {
  const absl::StatusOr<Descriptor> source = OpenSource(file, place);
  if (!source.ok()) return source.status();
  const absl::StatusOr<Descriptor> folder = MakeFolders(top, name, place);
  if (!folder.ok()) return folder.status();
  const std::string last = std::filesystem::path(name).filename();
  const Descriptor target(::openat(folder->get(), last.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700));
  if (!target.open()) return runtime::FileError(errno, name, "cannot be written");
  if (absl::Status copied = Copy(source->get(), target.get()); !copied.ok()) return copied;
  return GiveTo(target.get(), place.user);
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
                                     const ProgramPlace& place) {
  if (program.names_size() != program.files_size()) {
    return absl::InvalidArgumentError("program.names: one for each of program.files is wanted");
  }
  const std::string folder = place.job_folder + "/" + FolderName(program);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return folder;
  const std::string beside = folder + ".partial";
  std::filesystem::remove_all(beside, error);
  if (::mkdir(beside.c_str(), 0700) != 0)
    return runtime::FileError(errno, beside, "cannot be made");
  const Descriptor top(::open(beside.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.open()) return runtime::FileError(errno, beside, "cannot be opened");
  absl::Status status = GiveTo(top.get(), place.user);
  for (int i = 0; status.ok() && i < program.files_size(); ++i) {
    const std::string& name = program.names(i);
    if (LeadsOut(name)) {
      return absl::InvalidArgumentError("program.names: '" + name + "' leads out of the folder");
    }
    status = Put(program.files(i), top.get(), name, place);
  }
  if (!status.ok()) return status;
  std::filesystem::rename(beside, folder, error);
  if (error) return runtime::FileError(error.value(), folder, "cannot be made");
  return folder;
}

}  // namespace

absl::StatusOr<ProgramCommand> PrepareProgram(const tactus::v1::Program& program,
                                              const ProgramPlace& place,
                                              const std::vector<std::string>& environment) {
  std::vector<std::string> words(program.command().begin(), program.command().end());
  if (words.empty()) return absl::InvalidArgumentError("program.command: is missing");
  absl::StatusOr<std::string> directory = program.directory();
  if (!program.files().empty()) directory = PutFiles(program, place);
  if (!directory.ok()) return directory.status();
  const std::filesystem::path folder = *directory;
  std::error_code ignored;
  if (!folder.is_absolute() || !std::filesystem::is_directory(folder, ignored)) {
    return absl::NotFoundError("program.directory: '" + *directory + "' is no folder on this node");
  }
  std::optional<std::string> found =
      runtime::FindProgram(words.front(), {*directory, PathOf(environment)});
  if (!found) {
    return absl::NotFoundError("program.command: '" + words.front() +
                               "' is no program that can be run on this node");
  }
  words.front() = *std::move(found);
  return ProgramCommand{.arguments = std::move(words),
                        .directory = *std::move(directory),
                        .own_directory = !program.files().empty()};
}

}  // namespace tactus::agent
