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

// Everything the child needs, made before the fork.
struct Prepared {
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  pid_t parent = -1;
  int null = -1;
  int output = -1;
  const cpu_set_t* cpus = nullptr;  // null: any
  const char* directory = nullptr;  // null: the agent's
  int report = -1;  // errno of a failed exec goes here; closes itself when exec succeeds
};

// The child's side. Async-signal-safe calls only.
[[noreturn]] void Become(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);  // it died before it could be watched
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // exec keeps what is ignored
  if (prepared.cpus != nullptr) ::sched_setaffinity(0, sizeof(cpu_set_t), prepared.cpus);
  const bool there = prepared.directory == nullptr || ::chdir(prepared.directory) == 0;
  ::dup2(prepared.null, STDIN_FILENO);
  ::dup2(prepared.output, STDOUT_FILENO);
  ::dup2(prepared.output, STDERR_FILENO);
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  if (there) ::execve(prepared.arguments[0], prepared.arguments, prepared.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(prepared.report, &error, sizeof(error));
  ::_exit(127);
}

// 0 when the child runs the program, else the errno of its exec.
int ExecError(int report) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

absl::Status NoResources(const char* what) { return runtime::FileError(errno, "worker", what); }

}  // namespace

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
      .report = report_write.get()};
  const pid_t pid = ::fork();
  if (pid == 0) Become(prepared);
  if (pid < 0) return NoResources("no process");
  ::setpgid(pid, pid);  // both sides do, so that neither can be early
  report_write.Close();
  const int error = ExecError(report_read.get());
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (error != 0 || !process.open()) {
    const int reason = error != 0 ? error : errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return runtime::FileError(reason, command.arguments[0], "cannot be run");
  }
  return Child{.pid = pid, .pid_descriptor = process.Release(), .output = output_read.Release()};
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(runtime::ControlThread& control,
                                                                    const WorkerCommand& command,
                                                                    ExitHandler on_exit,
                                                                    OutputHandler on_output) {
  const absl::StatusOr<Child> child = Spawn(command);
  if (!child.ok()) return child.status();
  std::unique_ptr<WorkerProcess> process(
      new WorkerProcess(control, *child, command.log_path,
                        {.exited = std::move(on_exit), .output = std::move(on_output)}));
  process->AwaitOutput();
  process->AwaitExit();
  return process;
}

WorkerProcess::WorkerProcess(runtime::ControlThread& control, const Child& child,
                             const std::string& log_path, Handlers handlers)
    : pid_(child.pid),
      pid_descriptor_(control.context(), child.pid_descriptor),
      output_(control.context(), child.output),
      log_(log_path),
      handlers_(std::move(handlers)),
      kill_timer_(control) {}

WorkerProcess::~WorkerProcess() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);
  Reap();
}

void WorkerProcess::Stop(Duration grace) {
  if (reaped_) return;
  ::kill(-pid_, SIGTERM);
  const Instant kill_time = runtime::Now() + grace;
  if (kill_time >= kill_time_) return;
  kill_time_ = kill_time;
  kill_timer_.At(kill_time, [this] { ::kill(-pid_, SIGKILL); });
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
  ::kill(-pid_, SIGKILL);
  ReadOutput();
  ::waitpid(pid_, nullptr, 0);
  reaped_ = true;
  const bool exited = found.si_code == CLD_EXITED;
  return {.exit_code = exited ? found.si_status : -1,
          .signal = exited ? 0 : found.si_status,
          .log_tail = log_.Tail()};
}

}  // namespace tactus::agent
