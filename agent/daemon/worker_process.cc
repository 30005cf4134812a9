#include "agent/daemon/worker_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::agent {
namespace {

constexpr int kOutputPipeBytes = 1 << 20;  // what a worker may write while the agent is busy

// The pointers that execve wants; they point into `texts`.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Those of the processors that this thread may use, whatever it was told by others.
cpu_set_t Allowed(const std::vector<unsigned>& cpus) {
  cpu_set_t wanted, own;
  CPU_ZERO(&wanted);
  CPU_ZERO(&own);
  for (const unsigned cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &wanted);
  }
  ::sched_getaffinity(0, sizeof own, &own);
  CPU_AND(&wanted, &wanted, &own);
  return wanted;
}

// What the child says of a start that failed.
struct Report {
  box::Step step = box::Step::kNone;
  int error = 0;
};

// Everything the child needs, made before the fork.
struct Prepared {
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  pid_t parent = -1;
  int null = -1;
  int output = -1;
  const cpu_set_t* cpus = nullptr;                // null: any
  const char* directory = nullptr;                // null: the agent's
  const box::Confinement* confinement = nullptr;  // null: none
  int report = -1;  // a Report of a failed start goes here; closes itself when exec succeeds
};

std::set<pid_t>& Registered() {
  static std::set<pid_t> registered;
  return registered;
}

[[noreturn]] void GiveUp(const Prepared& prepared, box::Step step) {
  const Report report{.step = step, .error = errno};
  [[maybe_unused]] const ssize_t written = ::write(prepared.report, &report, sizeof report);
  ::_exit(127);
}

// The child's side. Async-signal-safe calls only.
[[noreturn]] void Become(const Prepared& prepared) {
  // Who leads a session stays in its own group: that the agent's signals reach it is not its to
  // say.
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // exec keeps what is ignored
  if (prepared.cpus != nullptr) ::sched_setaffinity(0, sizeof(cpu_set_t), prepared.cpus);
  ::dup2(prepared.null, STDIN_FILENO);
  ::dup2(prepared.output, STDOUT_FILENO);
  ::dup2(prepared.output, STDERR_FILENO);
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  if (prepared.confinement != nullptr) {
    const box::Step failed = box::Enter(*prepared.confinement);
    if (failed != box::Step::kNone) GiveUp(prepared, failed);
  }
  // Behind the change of its user, which forgets it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);  // it died before it could be watched
  // By its own rights.
  if (prepared.directory != nullptr && ::chdir(prepared.directory) != 0) {
    GiveUp(prepared, box::Step::kExec);
  }
  if (prepared.confinement != nullptr) {
    const box::Step failed = box::EnterFilter(*prepared.confinement);
    if (failed != box::Step::kNone) GiveUp(prepared, failed);
  }
  ::execve(prepared.arguments[0], prepared.arguments, prepared.environment);
  GiveUp(prepared, box::Step::kExec);
}

// Of a child that runs the program: nothing.
Report ReadReport(int descriptor) {
  Report report;
  ssize_t count = 0;
  do {
    count = ::read(descriptor, &report, sizeof report);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof report) ? report : Report{};
}

absl::Status NoResources(const char* what) { return runtime::FileError(errno, "worker", what); }

}  // namespace

const std::set<pid_t>& WorkerProcesses() { return Registered(); }

absl::StatusOr<WorkerProcess::Child> WorkerProcess::Spawn(const WorkerCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  std::array<int, 2> output{-1, -1};
  std::array<int, 2> report{-1, -1};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) return NoResources("no pipe");
  Descriptor output_read(output[0]), output_write(output[1]);
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return NoResources("no pipe");
  Descriptor report_read(report[0]), report_write(report[1]);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.open()) return NoResources("no /dev/null");
  ::fcntl(output_read.get(), F_SETPIPE_SZ, kOutputPipeBytes);
  ::fcntl(output_read.get(), F_SETFL, O_NONBLOCK);
  const cpu_set_t cpus = Allowed(command.cpus);
  const Prepared prepared{
      .arguments = argv.data(),
      .environment = envp.data(),
      .parent = ::getpid(),
      .null = null.get(),
      .output = output_write.get(),
      .cpus = CPU_COUNT(&cpus) > 0 ? &cpus : nullptr,
      .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
      .confinement = command.held != nullptr ? &command.held->confinement : nullptr,
      .report = report_write.get()};
  const pid_t pid = ::fork();
  if (pid == 0) Become(prepared);
  if (pid < 0) return NoResources("no process");
  report_write.Close();
  // Its session is its own when this returns.
  const Report failed = ReadReport(report_read.get());
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (failed.step != box::Step::kNone || !process.open()) {
    const int reason = failed.step != box::Step::kNone ? failed.error : errno;
    const bool boxed = failed.step != box::Step::kNone && failed.step != box::Step::kExec;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return runtime::FileError(reason, boxed ? "box" : command.arguments[0],
                              box::WordsOf(boxed ? failed.step : box::Step::kExec));
  }
  Registered().insert(pid);
  return Child{.pid = pid, .pid_descriptor = process.Release(), .output = output_read.Release()};
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(runtime::ControlThread& control,
                                                                    const WorkerCommand& command,
                                                                    ExitHandler on_exit,
                                                                    OutputHandler on_output) {
  const absl::StatusOr<Child> child = Spawn(command);
  if (!child.ok()) return child.status();
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(
      control, *child, command, {.exited = std::move(on_exit), .output = std::move(on_output)}));
  process->AwaitOutput();
  process->AwaitExit();
  return process;
}

WorkerProcess::WorkerProcess(runtime::ControlThread& control, const Child& child,
                             const WorkerCommand& command, Handlers handlers)
    : pid_(child.pid),
      pid_descriptor_(control.context(), child.pid_descriptor),
      output_(control.context(), child.output),
      log_(command.log_path),
      held_(command.held),
      handlers_(std::move(handlers)),
      kill_timer_(control) {}

WorkerProcess::~WorkerProcess() {
  if (reaped_) return;
  KillAll();
  Reap();
}

void WorkerProcess::KillAll() const {
  ::kill(-pid_, SIGKILL);
  if (held_ != nullptr && held_->cgroup != nullptr) held_->cgroup->Kill();
}

void WorkerProcess::Stop(Duration grace) {
  if (reaped_) return;
  ::kill(-pid_, SIGTERM);
  const Instant kill_time = runtime::Now() + grace;
  if (kill_time >= kill_time_) return;
  kill_time_ = kill_time;
  kill_timer_.At(kill_time, [this] { KillAll(); });
}

bool WorkerProcess::ReadOutput() {
  // Not for ever: a worker may write as fast as this reads.
  constexpr int kChunksMax = 128;
  std::array<char, 16384> chunk;
  for (int i = 0; i < kChunksMax; ++i) {
    const ssize_t count = ::read(output_.native_handle(), chunk.data(), chunk.size());
    if (count > 0) {
      const std::string_view output(chunk.data(), static_cast<std::size_t>(count));
      log_.Append(output);
      if (handlers_.output) handlers_.output(output);
    } else if (count == 0 || errno != EINTR) {
      return count != 0 && errno == EAGAIN;
    }
  }
  return true;
}

void WorkerProcess::AwaitOutput() {
  output_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     lifetime_.Guard([this](const boost::system::error_code& error) {
                       if (!error && ReadOutput()) AwaitOutput();
                     }));
}

void WorkerProcess::AwaitExit() {
  pid_descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                             lifetime_.Guard([this](const boost::system::error_code& error) {
                               if (error || reaped_) return;
                               const WorkerExit exit = Reap();
                               const ExitHandler on_exit = handlers_.exited;  // survives the object
                               on_exit(exit);
                             }));
}

WorkerExit WorkerProcess::Reap() {
  kill_timer_.Cancel();
  siginfo_t found = {};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &found, WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
  // The child is still a zombie, so its group's number cannot have passed to others.
  KillAll();
  ReadOutput();
  ::waitpid(pid_, nullptr, 0);
  Registered().erase(pid_);
  reaped_ = true;
  const bool exited = found.si_code == CLD_EXITED;
  return {.exit_code = exited ? found.si_status : -1,
          .signal = exited ? 0 : found.si_status,
          .log_tail = log_.Tail()};
}

}  // namespace tactus::agent
