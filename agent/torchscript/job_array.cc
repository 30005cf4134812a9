#include "agent/torchscript/job_array.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

#include "agent/torchscript/torchscript_trainee.h"
#include "agent/worker/agent_link.h"
#include "agent/worker/worker.h"

namespace tactus::torchscript {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUnavailable = 69;

// To a log that others write to as well: whole.
void Tell(const std::string& line) { std::cerr << line + '\n' << std::flush; }

// One job, from its agent's first word to its last one. Returns what its process would exit with.
int Live(Fusion& fusion, const std::string& socket) {
  auto link = worker::AgentLink::Connect(socket);
  if (!link.ok()) {
    Tell("tactus-worker: " + std::string(link.status().message()));
    return kExitUnavailable;
  }
  TorchscriptTrainee trainee(&fusion);
  const auto failed = worker::Worker(**link, trainee).Run();
  if (!failed) return 0;
  const std::string field = failed->field.empty() ? "" : failed->field + ": ";
  Tell("tactus-worker: " + field + failed->message);
  return kExitFailed;
}

}  // namespace

absl::Status JobArray::Connect(const std::string& path) {
  absl::StatusOr<int> connected = worker::ConnectToAgent(path);
  if (!connected.ok()) return connected.status();
  socket_ = Descriptor(*connected);
  return absl::OkStatus();
}

void JobArray::Run() {
  std::string partial;
  std::array<char, 4096> chunk;
  while (true) {
    const ssize_t count = ::read(socket_.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    partial.append(chunk.data(), static_cast<std::size_t>(count));
    for (std::size_t end; (end = partial.find('\n')) != std::string::npos;) {
      OnLine(partial.substr(0, end));
      partial.erase(0, end + 1);
    }
  }
}

// What a newer agent may say beside that is passed over.
void JobArray::OnLine(const std::string& line) {
  Reap();
  std::istringstream words(line);
  std::string verb, socket;
  std::uint64_t worker = 0;
  if (words >> verb >> worker && verb == "start" && std::getline(words >> std::ws, socket)) {
    Start(worker, socket);
  }
}

void JobArray::Start(std::uint64_t worker, const std::string& socket) {
  if (threads_.contains(worker)) return;
  threads_[worker] =
      std::thread([this, worker, socket] { End(worker, Live(fusion_, socket)); });  // Reap joins
}

void JobArray::End(std::uint64_t worker, int exit_code) {
  const std::string line =
      "ended " + std::to_string(worker) + " " + std::to_string(exit_code) + "\n";
  const threads::MutexLock lock(mutex_);
  ended_.push_back(worker);
  // A socket's buffer has room for thousands of them. Of an agent that is gone nobody hears.
  [[maybe_unused]] const ssize_t sent =
      ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

void JobArray::Reap() {
  std::vector<std::uint64_t> ended;
  {
    const threads::MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (const std::uint64_t worker : ended) {
    threads_.at(worker).join();
    threads_.erase(worker);
  }
}

}  // namespace tactus::torchscript
