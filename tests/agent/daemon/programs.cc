#include "tests/agent/daemon/programs.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tactus::agent {
namespace {

std::string Binaries() {
  const char* folder = getenv("TACTUS_BIN");
  return folder != nullptr ? folder : std::filesystem::current_path() / "bin";
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string FakeWorker() { return Binaries() + "/../tests/tactus-fake-worker"; }

std::string AgentProgram() { return Binaries() + "/tactus-agent"; }

}  // namespace tactus::agent
