#include "agent/daemon/worker_box.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "agent/box/beneath.h"
#include "agent/daemon/job_folders.h"
#include "runtime/job_files.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::agent {
namespace {

// Passed by others, listed by the agent alone.
constexpr mode_t kPassed = 0711;

absl::Status OpenToPass(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.open() && ::fchmod(opened.get(), kPassed) == 0) return absl::OkStatus();
  return runtime::FileError(errno, folder, "cannot be opened to the workers' user");
}

// Made where it is not there, beside nothing but what the agent made: no link is followed.
absl::StatusOr<Descriptor> MakeIn(int folder, const std::string& name) {
  if (::mkdirat(folder, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return runtime::FileError(errno, name, "cannot be made");
  }
  return box::OpenBeneath(folder, name, O_RDONLY | O_DIRECTORY);
}

absl::Status GiveFolder(int folder, const box::WorkerUser& user) {
  if (::fchown(folder, user.uid, user.gid) == 0) return absl::OkStatus();
  return runtime::FileError(errno, "folder", "cannot be given to the workers' user");
}

absl::Status CheckRoots(const WorkerBox::Options& options) {
  for (const std::string& root : options.box.data_roots) {
    if (box::IsBeneath(options.state_folder, root)) {
      return absl::FailedPreconditionError("data-roots: " + root + " has the state folder " +
                                           options.state_folder +
                                           " in it, which no worker may read");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerBox>> WorkerBox::Open(Options options) {
  options.box.state_folder = options.state_folder;
  if (absl::Status status = CheckRoots(options); !status.ok()) return status;
  if (options.box.user) {
    for (const std::string& folder : {options.state_folder, options.state_folder + "/jobs",
                                      options.state_folder + "/blobs", options.socket_folder}) {
      if (absl::Status status = OpenToPass(folder); !status.ok()) return status;
    }
    const std::string worker = std::filesystem::absolute(options.worker_binary).string();
    for (const auto& [flag, place] :
         {std::pair("state-dir", options.state_folder), std::pair("worker-binary", worker)}) {
      const absl::Status status = box::CheckReachable(place, *options.box.user);
      if (status.ok()) continue;
      return absl::Status(status.code(), std::string(flag) + ": " + std::string(status.message()));
    }
  }
  absl::StatusOr<std::unique_ptr<box::Box>> box = box::Box::Open(options.box);
  if (!box.ok()) return box.status();
  return std::unique_ptr<WorkerBox>(new WorkerBox(std::move(options), *std::move(box)));
}

std::string WorkerBox::label() const { return box_->on() ? box::LabelOf(box_->support()) : "off"; }

std::string WorkerBox::Explain() const {
  if (!box_->on()) return "workers do whatever the agent's user may (--sandbox off)";
  std::string text = box::ExplainLacks(box_->support());
  if (!box_->why_no_cgroups().empty()) text += "; cgroups: " + box_->why_no_cgroups();
  for (const std::string& folder : options_.box.writable) {
    if (!box::IsBeneath(options_.state_folder, folder)) continue;
    text += "; writable: " + folder + " has the state folder in it, which workers can change";
  }
  return text;
}

std::optional<uid_t> WorkerBox::user() const {
  return options_.box.user ? std::optional(options_.box.user->uid) : std::nullopt;
}

absl::Status WorkerBox::CheckPaths(const tactus::v1::JobSpec& spec) const {
  const std::vector<std::string>& roots = options_.box.data_roots;
  if (roots.empty()) return absl::OkStatus();
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    if (file.starts_with(runtime::kUploaded)) continue;
    if (absl::Status status = box::CheckBelowRoots(file, roots); !status.ok()) {
      return absl::Status(status.code(), field + ": " + std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WorkerFolders> WorkerBox::MakeFolders(const std::string& job,
                                                     const std::string& worker) const {
  const std::string jobs = options_.state_folder + "/jobs";
  const Descriptor all(::open(jobs.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!all.open()) return runtime::FileError(errno, jobs, "cannot be opened");
  const absl::StatusOr<Descriptor> own = MakeIn(all.get(), job);
  if (!own.ok()) return own.status();
  const absl::StatusOr<Descriptor> result = MakeIn(own->get(), "result");
  if (!result.ok()) return result.status();
  const std::string name = "scratch-" + worker;
  const absl::StatusOr<Descriptor> scratch = MakeIn(own->get(), name);
  if (!scratch.ok()) return scratch.status();
  if (options_.box.user) {
    if (::fchmod(own->get(), kPassed) != 0) {
      return runtime::FileError(errno, jobs + "/" + job, "cannot be opened to the workers' user");
    }
    for (const Descriptor* folder : {&*result, &*scratch}) {
      absl::Status given = GiveFolder(folder->get(), *options_.box.user);
      if (!given.ok()) return given;
    }
  }
  return WorkerFolders{.result = ResultFolder(jobs, job), .scratch = jobs + "/" + job + "/" + name};
}

absl::Status WorkerBox::GiveBlob(const std::string& path) const {
  if (!options_.box.user) return absl::OkStatus();
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.open() && ::fchown(file.get(), static_cast<uid_t>(-1), options_.box.user->gid) == 0 &&
      ::fchmod(file.get(), 0640) == 0) {
    return absl::OkStatus();
  }
  return runtime::FileError(errno, path, "cannot be given to the workers' user");
}

absl::Status WorkerBox::TakeFiles(const tactus::v1::Start& start, box::WorkerNeeds& needs) const {
  const std::string blobs = options_.state_folder + "/blobs/";
  const auto take = [&](const std::string& path) {
    const bool blob = path.starts_with(blobs) && runtime::IsSha256(path.substr(blobs.size()));
    if (!blob) {
      needs.named.push_back(path);
      needs.named.push_back(std::filesystem::path(path).parent_path().string());
      return absl::OkStatus();
    }
    needs.readable.push_back(path);
    return GiveBlob(path);
  };
  absl::Status status;
  for (const auto& [field, file] : runtime::FilesOf(start.spec())) {
    if (status.ok() && !file.empty()) status = take(file);
  }
  if (status.ok() && !start.checkpoint().empty()) status = take(start.checkpoint());
  return status;
}

absl::StatusOr<std::shared_ptr<const box::Held>> WorkerBox::Hold(
    const box::WorkerNeeds& needs) const {
  absl::StatusOr<box::Held> held = box_->Confine(needs);
  if (!held.ok()) return held.status();
  return std::make_shared<const box::Held>(*std::move(held));
}

absl::StatusOr<std::shared_ptr<const box::Held>> WorkerBox::Confine(const tactus::v1::Start& start,
                                                                    const WorkerFolders& folders,
                                                                    const ProgramCommand* program,
                                                                    bool gpu) const {
  box::WorkerNeeds needs{.name = std::to_string(start.worker_id()),
                         .writable = {folders.result, folders.scratch},
                         .gpu = gpu};
  if (absl::Status status = TakeFiles(start, needs); !status.ok()) return status;
  if (program == nullptr) {
    needs.readable.push_back(options_.worker_binary);
  } else if (program->own_directory) {
    needs.writable.push_back(program->directory);
  } else {
    needs.named.push_back(program->directory);
  }
  return Hold(needs);
}

absl::StatusOr<std::shared_ptr<const box::Held>> WorkerBox::ConfineArray(
    const tactus::v1::Start& start, bool gpu) const {
  box::WorkerNeeds needs{.name = "array-" + std::to_string(start.worker_id()),
                         .readable = {options_.state_folder + "/blobs", options_.worker_binary},
                         .writable = {options_.state_folder + "/jobs"},
                         .gpu = gpu};
  if (absl::Status status = TakeFiles(start, needs); !status.ok()) return status;
  return Hold(needs);
}

absl::Status WorkerBox::Admit(const tactus::v1::Start& start) const {
  box::WorkerNeeds unused;
  return TakeFiles(start, unused);
}

ProgramPlace WorkerBox::PlaceOf(const std::string& job) const {
  ProgramPlace place{.job_folder = options_.state_folder + "/jobs/" + job,
                     .blobs = options_.state_folder + "/blobs",
                     .private_places = options_.box.private_places,
                     .user = options_.box.user};
  place.private_places.push_back(options_.state_folder);
  return place;
}

}  // namespace tactus::agent
