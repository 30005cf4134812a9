#include "agent/box/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "runtime/process.h"

namespace tactus::box {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// The hidden places as a tree of names; a leaf is one of them.
struct Node {
  std::map<std::string, Node, std::less<>> below{};
  bool hidden = false;
};

Node TreeOf(const std::vector<std::string>& hidden) {
  Node top;
  for (const std::string& path : hidden) {
    Node* node = &top;
    for (const std::filesystem::path& part : std::filesystem::path(path).relative_path()) {
      if (!part.empty()) node = &node->below[part.string()];
    }
    node->hidden = true;
  }
  return top;
}

class Carving {
 public:
  using Names = std::set<std::string, std::less<>>;
  explicit Carving(LandlockRules& rules) : rules_(rules) {}

  // Of a folder with hidden places below.
  absl::Status Folder(int folder, const Node& node, const Names& only = {}) {
    struct stat found = {};
    if (::fstat(folder, &found) != 0) return runtime::FileError(errno, "/", "cannot be looked at");
    passed_.insert({found.st_dev, found.st_ino});
    const Descriptor listed(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Who may not list it cannot go through it; its workers can open by name what they know there.
    if (!listed.open()) return absl::OkStatus();
    const std::unique_ptr<DIR, CloseFolder> stream(::fdopendir(::dup(listed.get())));
    if (stream == nullptr) return runtime::FileError(errno, "folder", "cannot be listed");
    for (std::size_t count = 0; const dirent* entry = ::readdir(stream.get());) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || (!only.empty() && !only.contains(name))) continue;
      if (++count > kEntriesMax) return absl::OkStatus();
      if (absl::Status status = Entry(folder, entry->d_name, node); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  std::set<FileId> TakePassed() { return std::move(passed_); }

 private:
  absl::Status Entry(int folder, const char* name, const Node& node) {
    const auto known = node.below.find(std::string_view(name));
    if (known != node.below.end() && known->second.hidden) return absl::OkStatus();
    // A link allows nothing: where it leads has rules of its own.
    const Descriptor entry(::openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat found = {};
    if (!entry.open() || ::fstat(entry.get(), &found) != 0) return absl::OkStatus();  // it is gone
    if (!S_ISDIR(found.st_mode) && !S_ISREG(found.st_mode)) return absl::OkStatus();
    if (known != node.below.end() && S_ISDIR(found.st_mode)) {
      return Folder(entry.get(), known->second);
    }
    return rules_.Allow(entry.get(), Access::kRead);
  }

  LandlockRules& rules_;
  std::set<FileId> passed_;
};

}  // namespace

absl::StatusOr<std::set<FileId>> AllowAllBut(LandlockRules& rules,
                                             const std::vector<std::string>& hidden,
                                             const std::set<std::string, std::less<>>& tops) {
  const Descriptor top(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.open()) return runtime::FileError(errno, "/", "cannot be opened");
  Carving carving(rules);
  absl::Status status = carving.Folder(top.get(), TreeOf(hidden), tops);
  if (!status.ok()) return status;
  return carving.TakePassed();
}

}  // namespace tactus::box
