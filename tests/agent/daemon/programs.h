// The programs that tests start, and the files that these leave.

#pragma once

#include <string>

namespace tactus::agent {

// All of a file; empty when there is none.
std::string ReadFile(const std::string& path);

// The fake worker's program, built beside the tests (fake_worker/main.cc says what it can do).
std::string FakeWorker();

// The tactus-agent program.
std::string AgentProgram();

}  // namespace tactus::agent
