#include "tests/fuzz/scratch_folder.h"

#include <stdlib.h>

#include <filesystem>

#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

struct Folder {
  Folder() {
    std::string pattern = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    pattern += "/tactus-fuzz-XXXXXX";
    Require(::mkdtemp(pattern.data()) != nullptr, "a folder can be made");
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace

const std::string& ScratchFolder() {
  static const Folder folder;
  return folder.path;
}

}  // namespace tactus::fuzz
