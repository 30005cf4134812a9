// A folder for one test, removed at its end.

#pragma once

#include <string>

namespace tactus::agent {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// All of a file; empty when there is none.
std::string ReadFile(const std::string& path);

// The fake worker's program, built beside the tests (fake_worker/main.cc says what it can do).
std::string FakeWorker();

// The tactus-agent program.
std::string AgentProgram();

}  // namespace tactus::agent
