#include "client/local/slurm.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "client/local/child_process.h"
#include "client/observe/event_loop.h"
#include "client/text/text.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr std::uint32_t kGroupNodesMax = 100'000;
constexpr std::uint32_t kGroupWorkersMax = 256;
constexpr std::uint32_t kGroupCpusMax = 4096;

// Slurm looks at the limits of time twice a minute.
constexpr Duration kSlurmNoticeMin = Seconds(60);

absl::Status ReadWhole(const std::string& key, const std::string& text, std::uint32_t most,
                       std::uint32_t* value) {
  std::uint32_t read = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, read);
  if (error != std::errc() || rest != end || read < 1 || read > most) {
    return absl::InvalidArgumentError(key + ": found \"" + text + "\", allowed is a whole number " +
                                      "from 1 to " + std::to_string(most));
  }
  *value = read;
  return absl::OkStatus();
}

absl::Status SetMember(const std::string& key, const std::string& value, NodeGroup* group) {
  if (key == "nodes") return ReadWhole(key, value, kGroupNodesMax, &group->nodes);
  if (key == "cpus") return ReadWhole(key, value, kGroupCpusMax, &group->cpus);
  if (key == "workers") return ReadWhole(key, value, kGroupWorkersMax, &group->workers);
  std::string* text = key == "partition"    ? &group->partition
                      : key == "gres"       ? &group->gres
                      : key == "constraint" ? &group->constraint
                      : key == "memory"     ? &group->memory
                                            : nullptr;
  if (text == nullptr) {
    return absl::InvalidArgumentError("found \"" + key +
                                      "\", allowed are nodes, partition, gres, constraint, "
                                      "memory, cpus and workers");
  }
  *text = value;
  return absl::OkStatus();
}

// As one word of a shell.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// sbatch reads its lines with quotes of its own.
absl::Status CheckLine(const std::string& option, const std::string& text) {
  const bool bad = std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\'; });
  if (!bad) return absl::OkStatus();
  return absl::InvalidArgumentError(option + ": found \"" + Printable(text) +
                                    "\", allowed is a text without \", \\ and control characters");
}

std::string Line(const std::string& option, const std::string& value) {
  const bool plain = value.find_first_of(" '#") == std::string::npos;
  return "#SBATCH --" + option + "=" + (plain ? value : "\"" + value + "\"") + "\n";
}

// Rounded up.
std::int64_t WholeUnits(Duration span, Duration unit) { return (span + unit - Duration(1)) / unit; }

// The lines of one group of nodes. What is said of the first counts for no other.
std::string LinesOf(const NodeGroup& group, const SlurmScript& script) {
  std::string out = "#SBATCH --no-kill\n";
  if (script.time > Duration{})
    out += Line("time", std::to_string(WholeUnits(script.time, Seconds(60))));
  out += Line("nodes", std::to_string(group.nodes)) + Line("ntasks-per-node", "1");
  if (!group.partition.empty()) out += Line("partition", group.partition);
  if (!group.gres.empty()) out += Line("gres", group.gres);
  if (!group.constraint.empty()) out += Line("constraint", group.constraint);
  if (!group.memory.empty()) out += Line("mem", group.memory);
  if (group.cpus > 0) {
    out += Line("cpus-per-task", std::to_string(group.cpus));
  } else if (group.gres.empty()) {
    out += "#SBATCH --exclusive\n";
  }
  for (const std::string& line : script.lines) out += "#SBATCH " + line + "\n";
  return out;
}

std::string YesNo(bool is) { return is ? "yes" : "no"; }

// What the body reads.
std::string Variables(const SlurmScript& script) {
  std::string sets;
  for (const std::string& set : script.sets) sets += (sets.empty() ? "" : " ") + Quoted(set);
  std::string workers;
  for (const NodeGroup& group : script.groups) {
    workers += (workers.empty() ? "" : " ") + std::to_string(group.workers);
  }
  std::string to_server;
  if (!script.server.empty()) {
    to_server = "--server " + Quoted(script.server);
    if (script.insecure) to_server += " --insecure";
    if (!script.tls_dir.empty()) to_server += " --tls-dir " + Quoted(script.tls_dir);
  }
  std::string out;
  const auto set = [&out](const std::string& name, const std::string& value) {
    out += name + "=" + value + "\n";
  };
  set("bin", Quoted(script.binary_folder));
  set("folder", Quoted(script.folder));
  set("job_file", Quoted(script.job_file));
  set("sets", "(" + sets + ")");
  set("server", Quoted(script.server));
  set("to_server", "(" + to_server + ")");
  set("agent_tls", Quoted(script.agent_tls_dir));
  set("tls", YesNo(!script.insecure));
  set("interface", Quoted(script.interface));
  set("scratch", Quoted(script.scratch));
  set("notice", std::to_string(WholeUnits(script.notice, Seconds(1))));
  set("at_end", script.finish ? "finish" : "pause");
  set("requeue", YesNo(script.requeue));
  set("workers_of", "(" + workers + ")");
  return out;
}

absl::Status Check(const SlurmScript& script) {
  std::vector<std::pair<std::string, std::string>> texts = {{"--name", script.name},
                                                            {"--output", script.folder}};
  for (const NodeGroup& group : script.groups) {
    texts.insert(texts.end(), {{"partition", group.partition},
                               {"gres", group.gres},
                               {"constraint", group.constraint},
                               {"memory", group.memory}});
  }
  for (const auto& [option, text] : texts) {
    if (absl::Status checked = CheckLine(option, text); !checked.ok()) return checked;
  }
  for (const std::string& line : script.lines) {
    if (!line.starts_with("-") || line.find('\n') != std::string::npos) {
      return absl::InvalidArgumentError("--sbatch: found \"" + Printable(line) +
                                        "\", allowed is one option, such as --account=vision");
    }
  }
  if (script.notice < kSlurmNoticeMin) {
    return absl::InvalidArgumentError("--notice: found " + FormatSpan(script.notice) +
                                      ", allowed is 1m and more, as Slurm has no finer limits");
  }
  if (script.time > Duration{} && script.notice >= script.time) {
    return absl::InvalidArgumentError("--notice: found " + FormatSpan(script.notice) +
                                      ", allowed is less than --time, " + FormatSpan(script.time));
  }
  if (script.server.empty() && script.job_file.empty()) {
    return absl::InvalidArgumentError(
        "job_file is required, or --server, whose jobs these nodes are to train");
  }
  if (!script.tls_dir.empty() && script.agent_tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "--agent-tls-dir is required with --tls-dir: the agents have certificates of their own");
  }
  if (script.server.empty() && !script.agent_tls_dir.empty()) {
    return absl::InvalidArgumentError(
        "--agent-tls-dir: allowed with --server; an allocation's own coordinator has certificates "
        "made for it");
  }
  if (!script.server.empty() && script.finish) {
    return absl::InvalidArgumentError(
        "--finish: allowed without --server; the jobs of a coordinator that stays go on without "
        "these nodes");
  }
  return absl::OkStatus();
}

// Where a program of the user's PATH is; empty: nowhere.
std::string ProgramOfPath(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + name;
    if (end > 0 && ::access(path.c_str(), X_OK) == 0) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

}  // namespace

absl::Status ReadNodeGroup(const std::string& text, NodeGroup* group) {
  std::string_view rest = text;
  while (true) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size()) {
      return absl::InvalidArgumentError("found \"" + std::string(pair) +
                                        "\", allowed is KEY=VALUE,... such as "
                                        "partition=a100,nodes=2,gres=gpu:4");
    }
    absl::Status set =
        SetMember(std::string(pair.substr(0, equals)), std::string(pair.substr(equals + 1)), group);
    if (!set.ok() || end == rest.size()) return set;
    rest.remove_prefix(end + 1);
  }
}

absl::StatusOr<std::string> FormatSlurmScript(const SlurmScript& script) {
  if (absl::Status checked = Check(script); !checked.ok()) return checked;
  std::string out = "#!/bin/bash\n# Written by tactus slurm.\n";
  out += Line("job-name", script.name);
  out += Line("output", script.folder + "/slurm-%j.log") + Line("open-mode", "append");
  out += Line("signal", "B:USR1@" + std::to_string(WholeUnits(script.notice, Seconds(1))));
  if (script.requeue) out += "#SBATCH --requeue\n";
  for (std::size_t i = 0; i < script.groups.size(); ++i) {
    if (i > 0) out += "#SBATCH hetjob\n";
    out += LinesOf(script.groups[i], script);
  }
  return out + "\n" + Variables(script) + "\n" + SlurmScriptBody();
}

ExitCode SubmitSlurmScript(const SlurmScript& script, const Screen& screen) {
  const absl::StatusOr<std::string> text = FormatSlurmScript(script);
  if (!text.ok()) {
    screen.Say(std::string(text.status().message()));
    return ExitCode::kUsage;
  }
  const std::string sbatch = ProgramOfPath("sbatch");
  if (sbatch.empty()) {
    screen.Say("sbatch: not found in PATH; without --submit the script is printed");
    return ExitCode::kNotFound;
  }
  const std::string path = script.folder + "/tactus.sbatch";
  absl::Status written = runtime::MakeWritableFolder(script.folder);
  if (written.ok()) written = runtime::WriteFileWhole(path, *text);
  if (!written.ok()) {
    screen.Say(std::string(written.message()));
    return ExitCode::kFile;
  }
  absl::StatusOr<ChildProcess> child =
      ChildProcess::Start({.program = sbatch, .arguments = {path}});
  if (!child.ok()) {
    screen.Say(std::string(child.status().message()));
    return ExitCode::kGeneric;
  }
  EventLoop loop({SIGINT, SIGTERM, SIGHUP});
  const auto ended = [&child] { return !child->IsRunning(); };
  while (loop.RunUntil(ended, EventLoop::kForever) != EventLoop::Outcome::kDone) {
    child->Signal(SIGINT);
  }
  if (child->exit_code() != 0) {
    screen.Say(child->Obituary() + "; the script is " + path);
    return ExitCode::kGeneric;
  }
  return ExitCode::kOk;
}

}  // namespace tactus::client
