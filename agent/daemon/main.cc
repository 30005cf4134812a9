// tactus-agent: offers a node's devices to a coordinator and runs workers on them.

#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/joining.h"
#include "agent/daemon/options.h"
#include "agent/daemon/orphans.h"
#include "agent/daemon/preemption_watch.h"
#include "cuda/nvml.h"
#include "metrics/agent_metrics.h"
#include "runtime/cpu_quota.h"
#include "runtime/daemon_flags.h"
#include "runtime/http_server.h"
#include "runtime/logging.h"
#include "runtime/options.h"
#include "runtime/process.h"
#include "runtime/service_manager.h"

namespace {

using tactus::runtime::Exit;

constexpr tactus::Duration kStopGrace = tactus::Seconds(5);

struct Flags {
  tactus::agent::AgentFlags agent;
  tactus::agent::JoinFlags join;
  std::string nvml_library = tactus::cuda::GpuMonitor::kLibrary;
  std::string metrics_listen;
  tactus::runtime::DaemonFlags daemon = {};
};

// A daemon may be started without these; what it opens must not take their places.
void OccupyStandardStreams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

std::string WorkerProgram() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return tactus::runtime::WorkerProgramFor(own.parent_path().string());
}

std::string ProcessorModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "unknown processor";
}

// Of the host; 0 when it is not known.
std::uint64_t MemoryBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

tactus::agent::Host ThisHost() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return {.name = absl::AsciiStrToLower(name.data()),
          .processor_model = ProcessorModel(),
          .cores = tactus::runtime::UsableCores(std::thread::hardware_concurrency()),
          .memory_bytes = MemoryBytes(),
          .home = Variable("HOME"),
          .state_folders = {tactus::runtime::FoldersFromEnvironment().state}};
}

// Looks for GPUs where the flags name any; null where they do not, or where `host` now says why
// there are none.
std::unique_ptr<tactus::cuda::GpuMonitor> FindGpus(const Flags& flags, tactus::agent::Host& host) {
  if (!tactus::agent::NamesGpus(flags.agent)) return nullptr;
  tactus::cuda::OpenedGpuMonitor opened = tactus::cuda::GpuMonitor::Open(flags.nvml_library);
  host.no_gpus_reason = std::move(opened.reason);
  if (opened.monitor != nullptr) host.gpus = opened.monitor->gpus();
  return std::move(opened.monitor);
}

std::vector<std::string> Environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

// How it goes to the coordinator, which is asked who it is as well.
void DeclareSecurity(CLI::App& app, Flags& flags) {
  app.add_option("--tls-dir", flags.agent.tls_dir,
                 "Folder with ca.pem, cert.pem and key.pem, as tactus admin issue --node writes "
                 "them; the certificate says which node this is")
      ->envname("TACTUS_AGENT_TLS_DIR");
  app.add_option("--join", flags.join.token,
                 "A token, of tactus admin token --node: where --tls-dir has no valid certificate, "
                 "the coordinator that the token is of gives one")
      ->envname("TACTUS_JOIN");
  app.add_option("--join-file", flags.join.token_file,
                 "The same, of a file that not everybody may read")
      ->envname("TACTUS_JOIN_FILE");
  app.add_flag("--insecure", flags.agent.insecure,
               "Plain, without identities, though the address is not loopback")
      ->envname("TACTUS_AGENT_INSECURE");
}

// Some variables say AGENT, because a coordinator on the same host needs others.
void Declare(CLI::App& app, const tactus::agent::Host& host, Flags& flags) {
  flags.agent.state_folder = tactus::runtime::FoldersFromEnvironment().state + "/agent";
  flags.agent.worker_binary = WorkerProgram();
  app.add_option(
         "--coordinator", flags.agent.coordinator,
         "Where the coordinator listens, host:port; of several that share a store, all with "
         "commas between them")
      ->envname("TACTUS_COORDINATOR")
      ->required();
  app.add_option("--node", flags.agent.node,
                 "This node's name; default: the certificate's, else the host's name")
      ->envname("TACTUS_NODE")
      ->default_str(host.name);
  app.add_option("--devices", flags.agent.devices,
                 "Devices to offer: cpu:N, cuda:N (NVML's GPU N) or gpus, all of the host's")
      ->delimiter(',')
      ->envname("TACTUS_DEVICES")
      ->default_str("cpu:0");
  app.add_option("--emulated-speeds", flags.agent.emulated_speeds,
                 "Slow workers down artificially, one speed a device; 1 is the reference")
      ->delimiter(',')
      ->envname("TACTUS_EMULATED_SPEEDS");
  app.add_option("--emulated-cpu-factor", flags.agent.emulated_cpu_factor,
                 "CPU time at speed 1 is stretched by this, >= 1; 0: by speeds and cores")
      ->envname("TACTUS_EMULATED_CPU_FACTOR")
      ->capture_default_str();
  DeclareSecurity(app, flags);
  app.add_option("--address", flags.agent.address, "This host's address towards other workers")
      ->envname("TACTUS_ADDRESS")
      ->capture_default_str();
  app.add_option("--state-dir", flags.agent.state_folder, "Folder of logs and results")
      ->envname("TACTUS_AGENT_STATE_DIR")
      ->capture_default_str();
  app.add_option("--worker-binary", flags.agent.worker_binary, "The worker's program")
      ->envname("TACTUS_WORKER_BINARY")
      ->capture_default_str();
  app.add_flag("--allow-programs", flags.agent.allow_programs,
               "Take jobs that are programs: whoever may submit jobs then runs what they like on "
               "this node, as this user")
      ->envname("TACTUS_ALLOW_PROGRAMS");
  app.add_option("--nvml-library", flags.nvml_library,
                 "NVML, which GPUs are found and watched with")
      ->envname("TACTUS_NVML_LIBRARY")
      ->capture_default_str();
  app.add_option("--label", flags.agent.labels,
                 "key=value, for jobs that select nodes; may be given again")
      ->delimiter(',')
      ->envname("TACTUS_LABEL");
  app.add_option("--taint", flags.agent.taints,
                 "key or key=value: only jobs that tolerate it come here; may be given again")
      ->delimiter(',')
      ->envname("TACTUS_TAINT");
  app.add_option("--drain-deadline", flags.agent.drain_deadline,
                 "How long SIGTERM, SIGINT or SIGUSR1 lets jobs suspend before their workers are "
                 "ended; a second signal ends them at once, as 0 does")
      ->envname("TACTUS_DRAIN_DEADLINE")
      ->capture_default_str();
  app.add_option("--preemption-command", flags.agent.preemption_command,
                 "A shell command that exits with 0 when this machine is about to be taken away: "
                 "the agent then leaves as at SIGTERM, within the duration that is the command's "
                 "last line (\"110s\"), or --drain-deadline; else it is started again")
      ->envname("TACTUS_PREEMPTION_COMMAND");
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "Serve /metrics at host:port; default: not")
      ->envname("TACTUS_AGENT_METRICS_LISTEN");
  tactus::runtime::DeclareDaemonFlags(app, flags.daemon);
}

// What workers may do to this node.
void DeclareBox(CLI::App& app, tactus::agent::AgentFlags& flags) {
  tactus::agent::BoxFlags& box = flags.box;
  app.add_option("--sandbox", box.sandbox,
                 "on: workers reach no more than the kernel can hold them to, and the node's label "
                 "tactus/sandbox says what that leaves open; off: whatever this user may")
      ->envname("TACTUS_SANDBOX")
      ->capture_default_str();
  app.add_flag("--require-sandbox", box.require_sandbox,
               "Do not start where the kernel cannot hold all of: files, truncation, ports, ioctl, "
               "signals (Landlock 6, Linux 6.12), calls (seccomp), memory and tasks (a delegated "
               "cgroup, --worker-memory)")
      ->envname("TACTUS_REQUIRE_SANDBOX");
  app.add_option("--worker-user", box.worker_user,
                 "Name or number of the user as whom workers run; this agent is root's then")
      ->envname("TACTUS_WORKER_USER");
  app.add_option("--data-roots", box.data_roots,
                 "The only folders from which jobs take data that was not uploaded; default: "
                 "whatever this user may read but keys and state folders")
      ->delimiter(',')
      ->envname("TACTUS_DATA_ROOTS");
  app.add_option("--writable", box.writable,
                 "Folders that workers may write to, besides their jobs' own")
      ->delimiter(',')
      ->envname("TACTUS_WRITABLE");
  app.add_option("--private", box.private_places,
                 "Files and folders that workers may not read, besides keys and state folders")
      ->delimiter(',')
      ->envname("TACTUS_PRIVATE");
  app.add_option("--worker-memory", box.worker_memory,
                 "Memory of a worker and all it starts, as 16G; default: no limit")
      ->envname("TACTUS_WORKER_MEMORY");
  app.add_option("--worker-tasks", box.worker_tasks,
                 "Processes and threads of a worker; 0: no limit")
      ->envname("TACTUS_WORKER_TASKS")
      ->capture_default_str();
  app.add_option("--cgroup", box.cgroup,
                 "A cgroup (version 2) that was delegated to this user, for its workers' limits; "
                 "default: the agent's own, if it was")
      ->envname("TACTUS_CGROUP");
  app.add_option("--torchscript", flags.torchscript,
                 "Which TorchScript models workers load: any, none, or hashes:FILE, those whose "
                 "SHA-256 begins a line of the file")
      ->envname("TACTUS_TORCHSCRIPT")
      ->capture_default_str();
  app.add_option("--worker-env", flags.worker_env,
                 "Variables of this environment that workers get besides those that programs are "
                 "known to live by: NAME, or PREFIX* for all that begin so")
      ->delimiter(',')
      ->envname("TACTUS_WORKER_ENV");
}

int Fail(Exit code, const absl::Status& status) {
  std::fprintf(stderr, "tactus-agent: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(code);
}

// Exit code for a state folder that cannot be used.
Exit FolderExit(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return Exit::kConfiguration;
  return absl::IsUnavailable(status) ? Exit::kUnavailable : Exit::kCannotCreate;
}

void LogOptions(const tactus::agent::AgentOptions& options) {
  std::string devices;
  for (const tactus::agent::DeviceOptions& device : options.devices) {
    devices += (devices.empty() ? "" : ",") + device.name;
    if (device.emulated_speed > 0) devices += "@" + std::to_string(device.emulated_speed);
  }
  tactus::runtime::Logger("agent")->info(
      "agent started version={} node={} coordinator={} devices={} emulated_cpu_factor={} "
      "address={} "
      "state_dir={} worker_binary={} threads_per_cpu_device={} drain_deadline={} metrics={}",
      options.version, options.node, options.coordinator, devices, options.emulated_cpu_factor,
      options.address, tactus::runtime::Quoted(options.state_folder),
      tactus::runtime::Quoted(options.worker_binary), options.threads_per_cpu_device,
      tactus::runtime::FormatDuration(options.drain_deadline), options.metrics_address);
}

std::uint64_t DrawIncarnation() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// For people, of those that ask for the end.
const char* SignalName(int signal) {
  if (signal == SIGUSR1) return "SIGUSR1";
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

// Runs until a signal asks for the end.
int Serve(tactus::agent::AgentOptions options, tactus::metrics::AgentMetrics& metrics,
          std::unique_ptr<tactus::cuda::GpuMonitor> gpus,
          const tactus::runtime::ServiceManager& manager) {
  tactus::runtime::ControlThread control;
  absl::StatusOr<std::unique_ptr<tactus::agent::Agent>> agent =
      tactus::agent::Agent::Open(control, metrics, options, DrawIncarnation());
  if (!agent.ok()) return Fail(FolderExit(agent.status()), agent.status());
  LogOptions(options);
  std::promise<void> stopped;
  absl::Status refused;  // the control thread's until `stopped`
  boost::asio::signal_set signals(control.context(), SIGTERM, SIGINT, SIGUSR1);
  // Again and again: the second reason ends the workers, the third kills them. All captured
  // outlives the control thread.
  bool leaves = false;
  const auto leave = [&](const std::string& reason, tactus::Duration within) {
    manager.Stopping(within + kStopGrace + kStopGrace);
    const auto done = [&] { stopped.set_value(); };
    if (std::exchange(leaves, true) || within == tactus::Duration(0)) {
      (*agent)->Stop(kStopGrace, done);
    } else {
      (*agent)->Leave({.reason = reason, .within = within}, kStopGrace, done);
    }
  };
  std::function<void()> await_signal = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int signal) {
      if (error) return;
      leave(SignalName(signal), options.drain_deadline);
      await_signal();
    });
  };
  std::unique_ptr<tactus::agent::PreemptionWatch> preemption;
  const auto watch_for_preemption = [&] {
    if (options.preemption_command.empty()) return;
    // The command knows when the machine goes; the option only says how long people would wait.
    preemption = std::make_unique<tactus::agent::PreemptionWatch>(
        control,
        tactus::agent::PreemptionWatch::Options{
            .command = options.preemption_command,
            .environment = options.environment,
            .log_path = options.state_folder + "/preemption-command.log"},
        [&](std::optional<tactus::Duration> within) {
          if (!leaves) leave("preemption notice", within.value_or(options.drain_deadline));
        });
  };
  control.RunAndWait([&] {
    await_signal();
    watch_for_preemption();
    if (gpus != nullptr) (*agent)->Watch(std::move(gpus));
    (*agent)->Start([&](const absl::Status& status) {
      refused = status;
      (*agent)->Stop(kStopGrace, [&] { stopped.set_value(); });
    });
  });
  manager.Ready("node " + options.node + " of the coordinator " + options.coordinator);
  stopped.get_future().wait();
  control.RunAndWait([&] {
    preemption.reset();
    agent->reset();
    boost::system::error_code ignored;
    signals.cancel(ignored);
  });
  control.Stop();
  if (refused.ok()) return static_cast<int>(Exit::kOk);
  return Fail(Exit::kConfiguration,
              absl::Status(refused.code(), "the coordinator works with another version: " +
                                               std::string(refused.message())));
}

bool Resolves(const std::string& host) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

int Run(const Flags& flags, const tactus::agent::Host& host,
        std::unique_ptr<tactus::cuda::GpuMonitor> gpus,
        const tactus::runtime::ServiceManager& manager) {
  const absl::Status joined =
      tactus::agent::Join(flags.join, flags.agent.tls_dir, flags.agent.coordinator);
  if (!joined.ok()) {
    return Fail(absl::IsUnavailable(joined) ? Exit::kUnavailable : Exit::kConfiguration, joined);
  }
  absl::StatusOr<tactus::agent::AgentOptions> options = tactus::agent::Resolve(flags.agent, host);
  if (!options.ok()) return Fail(Exit::kConfiguration, options.status());
  if (!Resolves(options->address)) {
    return Fail(Exit::kConfiguration,
                absl::InvalidArgumentError("address: \"" + options->address +
                                           "\" does not resolve; allowed is an address or a name "
                                           "of this host, by which the other workers reach it"));
  }
  options->environment = Environment();
  options->version = TACTUS_VERSION;
  options->memory_kill_files = tactus::agent::FindMemoryKillFiles();
  tactus::metrics::AgentMetrics metrics(options->version);
  std::unique_ptr<tactus::runtime::HttpServer> http;
  if (!flags.metrics_listen.empty()) {
    auto opened = tactus::runtime::HttpServer::Open({.address = flags.metrics_listen});
    if (!opened.ok()) {
      const bool taken = absl::IsUnavailable(opened.status());
      return Fail(taken ? Exit::kUnavailable : Exit::kConfiguration,
                  absl::Status(opened.status().code(),
                               "metrics-listen: " + std::string(opened.status().message())));
    }
    http = *std::move(opened);
    tactus::metrics::RouteMetrics(*http, metrics.registry());
    http->Start();
    options->metrics_address = http->address();
  }
  return Serve(*std::move(options), metrics, std::move(gpus), manager);
}

}  // namespace

int main(int argc, char** argv) {
  OccupyStandardStreams();
  // Before the environment is kept for workers.
  const tactus::runtime::ServiceManager manager =
      tactus::runtime::ServiceManager::TakeFromEnvironment();
  std::signal(SIGPIPE, SIG_IGN);  // a log reader that leaves is no reason to end
  Flags flags;
  CLI::App app("Offers this node's devices to a Tactus coordinator and runs workers on them.",
               "tactus-agent");
  app.set_version_flag("--version", std::string("tactus-agent ") + TACTUS_VERSION);
  tactus::agent::Host host = ThisHost();
  Declare(app, host, flags);
  DeclareBox(app, flags.agent);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::kUsage);
  }
  std::unique_ptr<tactus::cuda::GpuMonitor> gpus = FindGpus(flags, host);
  if (app.got_subcommand("config")) {
    const absl::Status status = tactus::agent::Resolve(flags.agent, host).status();
    if (!status.ok()) return Fail(Exit::kConfiguration, status);
    tactus::runtime::ShowConfig(app, argc, argv);
    return static_cast<int>(Exit::kOk);
  }
  tactus::agent::AdoptOrphans();
  if (flags.daemon.parent_death_signal) tactus::runtime::EndWithParent();
  const absl::Status logging = tactus::runtime::StartLogging(flags.daemon.logging);
  if (!logging.ok()) {
    return Fail(Exit::kConfiguration, absl::InvalidArgumentError(tactus::runtime::WithSource(
                                          app, argc, argv, std::string(logging.message()))));
  }
  const int code = Run(flags, host, std::move(gpus), manager);
  tactus::runtime::StopLogging();
  return code;
}
