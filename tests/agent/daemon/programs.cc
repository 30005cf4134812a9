#include "tests/agent/daemon/temporary_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/check.h"

namespace tactus::agent {
namespace {

std::string Binaries() {
  const char* folder = getenv("TACTUS_BIN");
  return folder != nullptr ? folder : std::filesystem::current_path() / "bin";
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "tactus-test-XXXXXX").string();
  TACTUS_CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string FakeWorker() { return Binaries() + "/../tests/tactus-fake-worker"; }

std::string AgentProgram() { return Binaries() + "/tactus-agent"; }

}  // namespace tactus::agent
