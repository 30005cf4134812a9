#include "tests/integration/durability/coordinator_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

namespace tactus {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(30);
constexpr auto kPoll = std::chrono::milliseconds(2);

std::string AddressIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("grpc=", 0) == 0) return line.substr(5);
  }
  return "";
}

[[noreturn]] void Execute(std::vector<std::string> words, const std::string& log) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

CoordinatorProcess::CoordinatorProcess() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tactus-durable-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
}

CoordinatorProcess::~CoordinatorProcess() {
  Kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string CoordinatorProcess::Start() {
  const std::string address_file = folder_ + "/address";
  std::filesystem::remove(address_file);
  std::vector<std::string> words = {"bin/tactus-coordinator",
                                    "--listen",
                                    "127.0.0.1:0",
                                    "--state-dir",
                                    folder_ + "/state",
                                    "--metrics-listen",
                                    "off",
                                    "--address-file",
                                    address_file,
                                    "--log-level",
                                    "warn",
                                    "--parent-death-signal"};
  process_ = ::fork();
  if (process_ == 0) Execute(std::move(words), folder_ + "/log");
  const auto end = std::chrono::steady_clock::now() + kStartTimeout;
  while (std::chrono::steady_clock::now() < end) {
    const std::string address = AddressIn(address_file);
    if (!address.empty()) return address;
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = 0;
      return "";
    }
    std::this_thread::sleep_for(kPoll);
  }
  return "";
}

void CoordinatorProcess::Kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}

std::string CoordinatorProcess::Log() const {
  std::ifstream file(folder_ + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tactus
