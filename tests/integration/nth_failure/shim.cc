// Loaded before the C library: of the calls that change a folder's files, or that accept
// connections, the nth fails once, or the process is killed right before or right after it.
//
//   NTH_FAILURE_FOLDER  calls on files below it count; "accept": those that accept connections
//   NTH_FAILURE_PROGRAM only those of a program of this name; unset: of any
//   NTH_FAILURE         which of them fails, from 1 on; 0: none
//   NTH_FAILURE_ERRNO   with what
//   NTH_FAILURE_KILL    before or after: instead it kills the process there, as kill -9 does
//   NTH_FAILURE_REPORT  a file that is appended a line, "COUNT PROGRAM CALL PATH", for each call
//                       that counts; of all processes the first alone that comes to its nth meets
//                       it, and leaves that line in a file of this name with ".met"
//
// Counted: creating or truncating opens, fopen to write, mkstemp, mkdir, write, writev, pwrite,
// fflush, fsync, fdatasync, ftruncate, rename, unlink; accept and accept4, where a connection waits
// or not. What is written fails whole, as of a full disk. Any
// thread.

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function Next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  Function function = nullptr;
  std::memcpy(&function, &found, sizeof(function));
  return function;
}

// What the process was started with.
struct Order {
  const char* folder = std::getenv("NTH_FAILURE_FOLDER");
  long nth = std::atol(std::getenv("NTH_FAILURE") == nullptr ? "0" : std::getenv("NTH_FAILURE"));
  int error = std::atoi(
      std::getenv("NTH_FAILURE_ERRNO") == nullptr ? "5" : std::getenv("NTH_FAILURE_ERRNO"));
  const bool kills_before = Kills("before");
  const bool kills_after = Kills("after");
  bool counts = true;
  const char* const report_path = std::getenv("NTH_FAILURE_REPORT");
  int report = -1;
  static bool Kills(const char* when) {
    const char* const found = std::getenv("NTH_FAILURE_KILL");
    return found != nullptr && std::strcmp(found, when) == 0;
  }
  static int Append(const char* path, int more) {
    using Open = int (*)(const char*, int, ...);
    return Next<Open>("open")(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | more, 0644);
  }
  Order() {
    const char* const program = std::getenv("NTH_FAILURE_PROGRAM");
    if (program != nullptr) counts = std::strcmp(program, program_invocation_short_name) == 0;
    if (report_path != nullptr) report = Append(report_path, 0);
  }
};

const Order& order() {
  static const Order kOrder;
  return kOrder;
}

std::atomic<long> counted{0};
thread_local bool is_last = false;  // the call that this thread makes now

void KillThisProcess() { ::kill(::getpid(), SIGKILL); }

// Returns what a call did, unless it was to be the last one.
template <typename Result>
Result Done(Result result) {
  if (is_last) KillThisProcess();
  return result;
}

void Say(int file, const char* line, int size) {
  using Write = ssize_t (*)(int, const void*, size_t);
  static const auto write_on = Next<Write>("write");
  [[maybe_unused]] const ssize_t ignored = write_on(file, line, static_cast<std::size_t>(size));
}

// No process has come to its nth call before.
bool IsFirst(const char* line, int size) {
  if (order().report_path == nullptr) return true;
  char path[PATH_MAX];
  std::snprintf(path, sizeof path, "%s.met", order().report_path);
  const int met = Order::Append(path, O_EXCL);
  if (met < 0) return false;
  Say(met, line, size);
  ::close(met);
  return true;
}

// Counts the call, and says whether it is to fail.
bool Fails(const char* call, const char* path) {
  const int kept = errno;
  const Order& present = order();
  if (present.folder == nullptr || !present.counts ||
      std::strncmp(path, present.folder, std::strlen(present.folder)) != 0) {
    return false;
  }
  const long number = ++counted;
  char line[PATH_MAX + 64];
  const int size =
      std::snprintf(line, sizeof line, "%ld %s %s %s\n", number, program_invocation_short_name,
                    call, path + std::strlen(present.folder));
  if (present.report >= 0) Say(present.report, line, size);
  const bool chosen = number == present.nth && IsFirst(line, size);
  if (chosen && present.kills_before) KillThisProcess();
  is_last = chosen && present.kills_after;
  const bool fails = chosen && !is_last;
  errno = fails ? present.error : kept;
  return fails;
}

// The same for a file that is open.
bool Fails(const char* call, int file) {
  const int kept = errno;
  char link[64];
  char path[PATH_MAX] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  errno = kept;
  return size > 0 && Fails(call, path);
}

bool Changes(int flags) { return (flags & (O_CREAT | O_TRUNC)) != 0; }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  using Function = int (*)(const char*, int, ...);
  static const auto next = Next<Function>("open");
  return Changes(flags) && Fails("open", path) ? -1 : Done(next(path, flags, mode));
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  using Function = int (*)(const char*, int, ...);
  static const auto next = Next<Function>("open64");
  return Changes(flags) && Fails("open", path) ? -1 : Done(next(path, flags, mode));
}

FILE* fopen(const char* path, const char* mode) {
  static const auto next = Next<FILE* (*)(const char*, const char*)>("fopen");
  const bool writes = std::strchr("wa", mode[0]) != nullptr;
  return writes && Fails("fopen", path) ? nullptr : Done(next(path, mode));
}

int fflush(FILE* file) {
  static const auto next = Next<int (*)(FILE*)>("fflush");
  return file != nullptr && Fails("fflush", ::fileno(file)) ? EOF : Done(next(file));
}

int mkstemp(char* path) {
  static const auto next = Next<int (*)(char*)>("mkstemp");
  return Fails("mkstemp", path) ? -1 : Done(next(path));
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = Next<int (*)(const char*, mode_t)>("mkdir");
  return Fails("mkdir", path) ? -1 : Done(next(path, mode));
}

ssize_t write(int file, const void* bytes, size_t size) {
  using Function = ssize_t (*)(int, const void*, size_t);
  static const auto next = Next<Function>("write");
  return Fails("write", file) ? -1 : Done(next(file, bytes, size));
}

ssize_t writev(int file, const iovec* pieces, int count) {
  using Function = ssize_t (*)(int, const iovec*, int);
  static const auto next = Next<Function>("writev");
  return Fails("writev", file) ? -1 : Done(next(file, pieces, count));
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  using Function = ssize_t (*)(int, const void*, size_t, off_t);
  static const auto next = Next<Function>("pwrite");
  return Fails("pwrite", file) ? -1 : Done(next(file, bytes, size, offset));
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  using Function = ssize_t (*)(int, const void*, size_t, off64_t);
  static const auto next = Next<Function>("pwrite64");
  return Fails("pwrite", file) ? -1 : Done(next(file, bytes, size, offset));
}

int fsync(int file) {
  static const auto next = Next<int (*)(int)>("fsync");
  return Fails("fsync", file) ? -1 : Done(next(file));
}

int fdatasync(int file) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  return Fails("fdatasync", file) ? -1 : Done(next(file));
}

int ftruncate(int file, off_t size) noexcept {
  static const auto next = Next<int (*)(int, off_t)>("ftruncate");
  return Fails("ftruncate", file) ? -1 : Done(next(file, size));
}

int ftruncate64(int file, off64_t size) noexcept {
  static const auto next = Next<int (*)(int, off64_t)>("ftruncate64");
  return Fails("ftruncate", file) ? -1 : Done(next(file, size));
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next<int (*)(const char*, const char*)>("rename");
  return Fails("rename", from) ? -1 : Done(next(from, to));
}

int unlink(const char* path) noexcept {
  static const auto next = Next<int (*)(const char*)>("unlink");
  return Fails("unlink", path) ? -1 : Done(next(path));
}

int accept(int socket, sockaddr* address, socklen_t* length) {
  static const auto next = Next<int (*)(int, sockaddr*, socklen_t*)>("accept");
  return Fails("accept", "accept") ? -1 : Done(next(socket, address, length));
}

int accept4(int socket, sockaddr* address, socklen_t* length, int flags) {
  static const auto next = Next<int (*)(int, sockaddr*, socklen_t*, int)>("accept4");
  return Fails("accept4", "accept") ? -1 : Done(next(socket, address, length, flags));
}

}  // extern "C"
