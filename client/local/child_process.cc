#include "client/local/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "client/text/text.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

// What the new process needs, made before the fork: after it only calls that are safe in a signal
// handler are allowed.
struct Launch {
  const char* program;
  char* const* arguments;
  int log;         // -1: none
  int error_pipe;  // closed by exec; the error number goes into it when there is no exec
  pid_t parent;
};

[[noreturn]] void BecomeChild(const Launch& launch) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launch.parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (launch.log >= 0) {
    dup2(launch.log, STDOUT_FILENO);
    dup2(launch.log, STDERR_FILENO);
  }
  execv(launch.program, launch.arguments);
  const int error = errno;
  const ssize_t written = write(launch.error_pipe, &error, sizeof error);
  _exit(written == sizeof error ? 127 : 126);
}

// The error number that the child sent instead of becoming its program; 0 when it has become it.
int AwaitExec(int pipe) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(pipe, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const ChildOptions& options) {
  const bool logged = !options.log_path.empty();
  const int log =
      logged ? open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (logged && log < 0) return runtime::FileError(errno, options.log_path, "cannot be written");
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    if (logged) close(log);
    return runtime::FileError(error, options.program, "cannot be started");
  }
  std::vector<std::string> words = {options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Launch launch = {.program = options.program.c_str(),
                         .arguments = arguments.data(),
                         .log = log,
                         .error_pipe = pipe_ends[1],
                         .parent = getpid()};
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(launch);
  const int fork_error = errno;
  if (logged) close(log);
  close(pipe_ends[1]);
  const int error = pid < 0 ? fork_error : AwaitExec(pipe_ends[0]);
  close(pipe_ends[0]);
  if (error == 0) return ChildProcess(pid, options);
  if (pid > 0) waitpid(pid, nullptr, 0);
  return runtime::FileError(error, options.program, "cannot be started");
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : options_(std::move(other.options_)),
      pid_(std::exchange(other.pid_, -1)),
      ended_(other.ended_),
      wait_status_(other.wait_status_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && IsRunning()) Kill();
}

bool ChildProcess::IsRunning() {
  if (ended_) return false;
  ended_ = waitpid(pid_, &wait_status_, WNOHANG) == pid_;
  return !ended_;
}

void ChildProcess::Signal(int signal) {
  if (IsRunning()) kill(pid_, signal);
}

void ChildProcess::Kill() {
  if (!IsRunning()) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
}

std::string ChildProcess::Obituary() const {
  std::string text = BaseName(options_.program);
  if (WIFSIGNALED(wait_status_)) {
    text += " was ended by signal " + std::to_string(WTERMSIG(wait_status_));
  } else {
    text += " ended with code " + std::to_string(WEXITSTATUS(wait_status_));
  }
  const std::string last = LastLine(options_.log_path);
  return last.empty() ? text : text + ": " + last;
}

int ChildProcess::exit_code() const {
  return WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

std::string LastLine(const std::string& path) {
  constexpr std::streamoff kTailMax = 4096;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kTailMax));
  std::string tail((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t end = tail.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return "";
  tail.resize(end + 1);
  return Printable(tail.substr(tail.rfind('\n') + 1));
}

}  // namespace tactus::client
