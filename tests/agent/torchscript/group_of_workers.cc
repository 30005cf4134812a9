#include "tests/agent/torchscript/group_of_workers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "agent/torchscript/torchscript_trainee.h"
#include "agent/worker/agent_link.h"
#include "agent/worker/worker.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/worker/support/resolved_spec.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;

// Plays the agent and the coordinator for one worker.
class FakeAgent {
 public:
  FakeAgent(int socket, const GroupSetting& setting, int rank)
      : socket_(socket), setting_(setting), rank_(rank) {}

  void Say(const json& message) {
    const std::string line = message.dump() + "\n";
    EXPECT_EQ(write(socket_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }

  void Start() {
    Say({{"start",
          {{"jobId", "test"},
           {"spec", worker::ResolvedSpec(setting_.spec)},
           {"device", DeviceName()},
           {"emulatedSpeed",
            setting_.speeds.empty() ? 0.0 : setting_.speeds[static_cast<std::size_t>(rank_)]},
           {"emulatedCpuFactor", 3.0},
           {"address", "127.0.0.1"},
           {"outputDirectory", setting_.output_directory},
           {"checkpoint", setting_.checkpoint},
           {"skipSamples", std::to_string(setting_.skip_samples)}}}});
  }

  std::string DeviceName() const {
    if (setting_.devices.empty()) return "cpu:" + std::to_string(rank_);
    return setting_.devices[static_cast<std::size_t>(rank_)];
  }

  void FormGroup() {
    Say({{"group",
          {{"generation", "1"},
           {"rank", rank_},
           {"size", setting_.batch_sizes.size()},
           {"transport", setting_.transport},
           {"lossSeconds", setting_.loss_seconds},
           {"plan",
            {{"version", "1"},
             {"batchSizes", setting_.batch_sizes},
             {"synchronization", setting_.synchronization}}}}}});
  }

  // The next message, or null at the end.
  json Next() {
    std::size_t end;
    while ((end = input_.find('\n')) == std::string::npos) {
      char chunk[4096];
      const ssize_t count = read(socket_, chunk, sizeof(chunk));
      if (count <= 0) return nullptr;
      input_.append(chunk, static_cast<std::size_t>(count));
    }
    json message = json::parse(input_.substr(0, end));
    input_.erase(0, end + 1);
    outcome_.lines.push_back(message);
    return message;
  }

  WorkerOutcome outcome_;

 private:
  const int socket_;
  const GroupSetting& setting_;
  const int rank_;
  std::string input_;
};

class Meeting {
 public:
  explicit Meeting(std::size_t size)
      : endpoints_(size), barrier_(static_cast<std::ptrdiff_t>(size)) {}

  json Exchange(std::size_t rank, json endpoint) {
    endpoints_[rank] = std::move(endpoint);
    barrier_.arrive_and_wait();
    return endpoints_;
  }
  void Leave() { barrier_.arrive_and_drop(); }

 private:
  std::vector<json> endpoints_;
  std::barrier<> barrier_;
};

// Serves one worker to its end. Returns what it said.
WorkerOutcome Serve(int socket, const GroupSetting& setting, std::size_t rank, Meeting& meeting) {
  FakeAgent agent(socket, setting, static_cast<int>(rank));
  agent.Start();
  if (setting.discarded_at_once) agent.Say({{"stop", {{"discard", true}}}});
  bool met = false;
  while (true) {
    const json message = agent.Next();
    if (message.is_null()) break;
    if (message.contains("ready")) agent.FormGroup();
    if (rank == 0 && !setting.stop.is_null() && message.contains("report") &&
        message["report"]["round"] == std::to_string(setting.stop_after)) {
      agent.Say({{"stop", setting.stop}});
    }
    if (message.contains("endpoint")) {
      met = true;
      agent.Say({{"peers",
                  {{"generation", "1"},
                   {"endpoints", meeting.Exchange(rank, message["endpoint"]["endpoint"])}}}});
    }
  }
  if (!met) meeting.Leave();
  return agent.outcome_;
}

}  // namespace

json WorkerOutcome::First(const std::string& kind) const {
  const std::vector<json> all = All(kind);
  return all.empty() ? json() : all.front();
}

std::vector<json> WorkerOutcome::All(const std::string& kind) const {
  std::vector<json> found;
  for (const json& line : lines) {
    if (line.contains(kind)) found.push_back(line[kind]);
  }
  return found;
}

std::vector<WorkerOutcome> RunGroup(const GroupSetting& setting) {
  const std::size_t size = setting.batch_sizes.size();
  Meeting meeting(size);
  std::vector<WorkerOutcome> outcomes(size);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < size; ++rank) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    threads.emplace_back([&, rank, ends] {
      std::optional<worker::FailedMessage> failed;
      std::jthread worker([&failed, worker_end = ends[1]] {
        worker::AgentLink link(worker_end);
        TorchscriptTrainee trainee;
        failed = worker::Worker(link, trainee).Run();
      });
      outcomes[rank] = Serve(ends[0], setting, rank, meeting);
      worker.join();
      close(ends[0]);
      outcomes[rank].ok = !failed;
      if (failed) outcomes[rank].error = failed->message;
    });
  }
  threads.clear();
  return outcomes;
}

std::string WriteCorpus(const std::string& folder, std::size_t bytes) {
  const std::string path = folder + "/corpus.txt";
  std::ofstream file(path, std::ios::binary);
  Rng rng(3);
  static const char* const kWords[] = {"round ", "plan ", "lane ", "batch ", "worker ", "speed\n"};
  for (std::size_t written = 0; written < bytes;) {
    const std::string word = kWords[rng.Below(6)];
    file << word;
    written += word.size();
  }
  return path;
}

json TinySpec(const std::string& corpus) {
  return {{"name", "tiny"},
          {"model",
           {{"builtin", "bytes-lm"},
            {"options", {{"width", 16}, {"heads", 2}, {"layers", 1}, {"context", 16}}}}},
          {"data", {{"text", corpus}}},
          {"optimizer", {{"sgd", {{"learningRate", 0.1}, {"momentum", 0.9}}}}},
          {"stop", {{"rounds", "20"}}}};
}

}  // namespace tactus::torchscript
