// A worker for tests of the agent: connects, reads Start, and behaves as the job's name says.
//
// clang-format off
//   echo       Ready with its own process id as `parameters`; reports each plan; on stop Finished
//   stubborn   the same, but ignores SIGTERM and the end of its socket
//   deaf       the same, and ignores stop, too
//   loads      loads until its output directory has a file "loaded", whatever it is told; then as
//              echo
//   loads-deaf the same, then as deaf
//   suspends   Ready; on stop writes checkpoint.safetensors and says Finished with it, suspended
//   result     writes model.pt of 2.5 MiB and says Finished with that file
//   training   Ready; for a plan V says at once that it has the checkpoints of V, V + 1 and V + 2
//              rounds, which say so; on stop Finished
//   snapshots  Ready; for a plan V says that it has the snapshots of V, V + 1 and V + 2 seconds,
//              which say so, and reports; on stop exits with code 3
//   finishes   the same, but on stop writes model.pt and says Finished with it; asked to suspend,
//              checkpoint.safetensors, suspended
//   names      the same as finishes, with its snapshots after model.pt
//   escape     says Finished with the file ../secret
//   missing    says Finished with a file that is not there
//   malformed  says something that is no message
//   crash      writes to standard error and exits with code 3
//   burst      a Ready, 1000 reports, an Endpoint, then as echo
//   start      says Failed with its whole Start line as the message
//   gpu        says Failed with its device and CUDA_VISIBLE_DEVICES as the message
//   talk       Ready; a line of output for each plan; on stop "the end" without a newline
// clang-format on
//
// With --array it is the process of several, each of which behaves as its own job's name says.

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

namespace {

using nlohmann::json;

// The line to the agent; blocking.
class Wire {
 public:
  explicit Wire(const char* path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      std::perror("connect");
      ::_exit(69);
    }
  }

  void Say(const json& message) { SayText(message.dump()); }

  void SayText(const std::string& text) {
    const std::string line = text + "\n";
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t count = ::send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (count < 0) ::_exit(70);
      done += static_cast<std::size_t>(count);
    }
  }

  // False at the end.
  bool Hear(std::string& line) {
    line.clear();
    for (char c = 0;;) {
      if (::read(socket_, &c, 1) != 1) return false;
      if (c == '\n') return true;
      line += c;
    }
  }

 private:
  int socket_;
};

json Report(int round, const json& version) {
  return {
      {"report", {{"round", std::to_string(round)}, {"planVersion", version}, {"samples", "4"}}}};
}

json Finished(const json& files) {
  return {{"finished", {{"reason", "asked to"}, {"rounds", "3"}, {"files", files}}}};
}

int Echo(Wire& wire, bool stubborn) {
  wire.Say(
      {{"standing", {{"generation", "3"}, {"batches", "7"}, {"waits", true}, {"awaits", {1}}}}});
  wire.Say({{"ready", {{"parameters", std::to_string(::getpid())}}}});
  int round = 0;
  for (std::string line; wire.Hear(line);) {
    const json message = json::parse(line);
    if (message.contains("plan")) wire.Say(Report(round++, message["plan"].value("version", "0")));
    if (message.contains("stop")) {
      wire.Say(Finished(json::array()));
      return 0;
    }
  }
  while (stubborn) ::pause();
  return 0;
}

int Suspends(Wire& wire, const std::string& folder) {
  wire.Say({{"ready", {{"parameters", std::to_string(::getpid())}}}});
  for (std::string line; wire.Hear(line);) {
    const json message = json::parse(line);
    if (!message.contains("stop")) continue;
    std::ofstream(folder + "/checkpoint.safetensors") << "here it stood";
    json finished = Finished({"checkpoint.safetensors"});
    finished["finished"]["reason"] = message["stop"]["reason"];
    finished["finished"]["suspended"] = message["stop"]["suspend"];
    wire.Say(finished);
    return 0;
  }
  return 0;
}

int Deaf(Wire& wire) {
  wire.Say({{"ready", {{"parameters", std::to_string(::getpid())}}}});
  while (true) ::pause();
}

int Loads(Wire& wire, const std::string& folder, bool deaf) {
  while (!std::filesystem::exists(folder + "/loaded")) ::usleep(2000);
  return deaf ? Deaf(wire) : Echo(wire, false);
}

int Result(Wire& wire, const std::string& folder) {
  std::ofstream(folder + "/model.pt", std::ios::binary) << std::string(5 << 19, 'm');
  wire.Say(Finished({"model.pt"}));
  return 0;
}

int Training(Wire& wire, const std::string& folder) {
  wire.Say({{"ready", {{"parameters", "1"}}}});
  std::filesystem::create_directories(folder + "/checkpoints");
  for (std::string line; wire.Hear(line);) {
    const json message = json::parse(line);
    if (message.contains("stop")) break;
    const int first = std::stoi(message["plan"].value("version", "0"));
    for (int rounds = first; rounds < first + 3; ++rounds) {
      const std::string file = "checkpoints/" + std::to_string(rounds) + ".safetensors";
      std::ofstream(folder + "/" + file) << "after " << rounds;
      wire.Say({{"checkpointed",
                 {{"generation", "1"}, {"file", file}, {"rounds", std::to_string(rounds)}}}});
    }
  }
  wire.Say(Finished(json::array()));
  return 0;
}

int Snapshots(Wire& wire, const std::string& folder, const std::string& behaviour) {
  wire.Say({{"ready", {{"parameters", "1"}}}});
  std::filesystem::create_directories(folder + "/snapshots");
  json names = json::array({"model.pt"});
  bool suspended = false;
  for (std::string line; wire.Hear(line);) {
    const json message = json::parse(line);
    if (message.contains("stop")) {
      suspended = message["stop"].value("suspend", false);
      break;
    }
    const int first = std::stoi(message["plan"].value("version", "0"));
    for (int seconds = first; seconds < first + 3; ++seconds) {
      const std::string file = "snapshots/" + std::to_string(seconds) + ".safetensors";
      std::ofstream(folder + "/" + file) << "after " << seconds;
      wire.Say({{"snapshotted", {{"file", file}}}});
      if (behaviour == "names") names.push_back(file);
    }
    wire.Say(Report(first, message["plan"].value("version", "0")));
  }
  if (behaviour == "snapshots") return 3;
  if (suspended) names = {"checkpoint.safetensors"};
  std::ofstream(folder + "/" + names[0].get<std::string>()) << "here it stood";
  json finished = Finished(names);
  finished["finished"]["suspended"] = suspended;
  wire.Say(finished);
  return 0;
}

int Burst(Wire& wire) {
  wire.Say({{"ready", {{"parameters", "1"}}}});
  for (int round = 0; round < 1000; ++round) wire.Say(Report(round, "1"));
  wire.Say({{"endpoint", {{"generation", "1"}, {"endpoint", "AAEC"}}}});
  return Echo(wire, false);
}

int Talk(Wire& wire) {
  wire.Say({{"ready", {{"parameters", "1"}}}});
  for (std::string line; wire.Hear(line);) {
    const json message = json::parse(line);
    if (message.contains("stop")) break;
    std::printf("line %s\n", message["plan"].value("version", "0").c_str());
    std::fflush(stdout);
  }
  std::printf("the end");
  std::fflush(stdout);
  return 0;
}

int Behave(Wire& wire, const std::string& first_line) {
  const json start = json::parse(first_line).at("start");
  const std::string behaviour = start.at("spec").at("name");
  if (behaviour == "stubborn" || behaviour == "deaf") ::signal(SIGTERM, SIG_IGN);
  if (behaviour == "loads-deaf") ::signal(SIGTERM, SIG_IGN);
  if (behaviour == "deaf") return Deaf(wire);
  if (behaviour == "loads" || behaviour == "loads-deaf") {
    return Loads(wire, start.at("outputDirectory"), behaviour == "loads-deaf");
  }
  if (behaviour == "suspends") return Suspends(wire, start.at("outputDirectory"));
  if (behaviour == "echo" || behaviour == "stubborn") return Echo(wire, behaviour == "stubborn");
  if (behaviour == "result") return Result(wire, start.at("outputDirectory"));
  if (behaviour == "training") return Training(wire, start.at("outputDirectory"));
  if (behaviour == "snapshots" || behaviour == "finishes" || behaviour == "names") {
    return Snapshots(wire, start.at("outputDirectory"), behaviour);
  }
  if (behaviour == "burst") return Burst(wire);
  if (behaviour == "escape") wire.Say(Finished({"../secret"}));
  if (behaviour == "missing") wire.Say(Finished({"nothing.pt"}));
  if (behaviour == "start") wire.Say({{"failed", {{"message", first_line}}}});
  if (behaviour == "gpu") {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const std::string device = start.at("device");
    wire.Say({{"failed", {{"message", device + " of " + (visible ? visible : "all")}}}});
  }
  if (behaviour == "malformed") {
    wire.SayText("this is no message");
    while (true) ::pause();
  }
  if (behaviour == "crash") {
    std::fprintf(stderr, "boom: out of luck\n");
    return 3;
  }
  if (behaviour == "talk") return Talk(wire);
  return 0;
}

}  // namespace

int RunOne(const std::string& path) {
  Wire wire(path.c_str());
  std::string line;
  return wire.Hear(line) ? Behave(wire, line) : 69;
}

int RunArray(const char* path) {
  Wire control(path);
  for (std::string line; control.Hear(line);) {
    std::istringstream words(line);
    std::string verb, worker, socket;
    words >> verb >> worker >> socket;
    std::thread([&control, worker, socket] {
      const int code = RunOne(socket);
      control.SayText("ended " + worker + " " + std::to_string(code));
    }).detach();
  }
  ::_exit(0);
}

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--array") == 0) return RunArray(argv[2]);
  if (argc != 3 || std::strcmp(argv[1], "--socket") != 0) return 64;
  return RunOne(argv[2]);
}
