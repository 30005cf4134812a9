#include "tests/support/bucket/bucket_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "tests/support/http/http_client.h"

extern char** environ;

namespace tactus::support {

BucketProcess::BucketProcess() {
  const char* source = std::getenv("TACTUS_SOURCE");
  TACTUS_CHECK(source != nullptr);
  std::string python = "/usr/bin/python3";
  std::string no_bytecode = "-B";
  std::string program = std::string(source) + "/tests/support/s3_server.py";
  std::string port_file = folder_.File("port");
  char* words[] = {python.data(), no_bytecode.data(), program.data(), port_file.data(), nullptr};
  pid_t process = -1;
  TACTUS_CHECK(::posix_spawn(&process, python.c_str(), nullptr, nullptr, words, environ) == 0);
  process_ = process;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (address_.empty() && std::chrono::steady_clock::now() < end) {
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ifstream(port_file) >> address_;
  }
  TACTUS_CHECK(!address_.empty());
}

BucketProcess::~BucketProcess() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void BucketProcess::Clear() {
  nlohmann::json remove = nlohmann::json::array();
  const nlohmann::json state = State();
  for (const auto& [key, size] : state["objects"].items()) remove.push_back(key);
  Order({{"faults", nlohmann::json::array()}, {"clock", 0}, {"page", 1000}, {"remove", remove}});
}

nlohmann::json BucketProcess::Order(const nlohmann::json& order) {
  const std::string body = order.dump();
  HttpClient client(address_);
  TACTUS_CHECK(client.Send("POST /_control HTTP/1.1\r\nHost: test\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body));
  const std::string answer = client.ReadAnswer();
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace tactus::support
