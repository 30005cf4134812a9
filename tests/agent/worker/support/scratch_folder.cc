#include "tests/agent/worker/support/scratch_folder.h"

#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace tactus::worker {

std::string MakeFolder(const std::string& name) {
  const std::string folder =
      testing::TempDir() + "/tactus-" + std::to_string(getpid()) + "-" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace tactus::worker
