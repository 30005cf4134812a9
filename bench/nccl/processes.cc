#include "bench/nccl/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "cuda/nccl.h"

namespace tactus::bench::nccl {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A descriptor that is closed at its end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return number_; }
  void Close() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor from;
  Descriptor into;
};

Pipe MakePipe() {
  int ends[2];
  TACTUS_CHECK(pipe(ends) == 0);
  return {.from = Descriptor(ends[0]), .into = Descriptor(ends[1])};
}

// All of it, as none of what is written here is longer than a pipe holds.
bool WriteAll(int into, const void* bytes, std::size_t length) {
  return write(into, bytes, length) == static_cast<ssize_t>(length);
}

// What all members share. Each process closes the ends that are not its own, so that the end of a
// process is the end of what others read.
struct Wires {
  std::vector<Pipe> ids{};  // from rank 0 to each of the others
  Pipe alive = MakePipe();  // written by nobody, held open by all but rank 0
};

std::optional<cuda::nccl::UniqueId> ReceiveId(int from) {
  cuda::nccl::UniqueId id;
  const ssize_t got = read(from, id.bytes.data(), id.bytes.size());
  if (got != static_cast<ssize_t>(id.bytes.size())) return std::nullopt;
  return id;
}

Outcome RunFirst(Wires& wires, const MemberCase& run) {
  wires.alive.into.Close();
  const cuda::nccl::MadeUniqueId made = cuda::nccl::MakeUniqueId();
  if (!made.id) return {.said = made.reason};
  for (Pipe& pipe : wires.ids) {
    WriteAll(pipe.into.get(), made.id->bytes.data(), made.id->bytes.size());
  }
  const auto await_end = [&wires] {
    char nothing;
    TACTUS_CHECK(read(wires.alive.from.get(), &nothing, 1) == 0);
  };
  return run({.rank = 0, .id = *made.id, .kill_others = await_end});
}

Outcome RunOther(int rank, Wires& wires, const MemberCase& run) {
  for (Pipe& pipe : wires.ids) pipe.into.Close();
  const Pipe& mine = wires.ids.at(static_cast<std::size_t>(rank - 1));
  const std::optional<cuda::nccl::UniqueId> id = ReceiveId(mine.from.get());
  if (!id) return {.said = "rank 0 sent no unique id"};
  return run({.rank = rank, .id = *id, .kill_others = [] { raise(SIGKILL); }});
}

// A member's process as its parent sees it.
struct Child {
  pid_t process = -1;
  Descriptor told;
  std::string lines = {};
};

Child Start(int rank, Wires& wires, const MemberCase& run) {
  Pipe told = MakePipe();
  const pid_t process = fork();
  TACTUS_CHECK(process >= 0);
  if (process == 0) {
    told.from.Close();
    const Outcome outcome = rank == 0 ? RunFirst(wires, run) : RunOther(rank, wires, run);
    const std::string lines = ToLines(outcome);
    WriteAll(told.into.get(), lines.data(), lines.size());
    _exit(0);  // nothing of the parent's is to be flushed or freed twice
  }
  return {.process = process, .told = std::move(told.from)};
}

// Reads until the child closes its end. False: the time is over.
bool ReadUntil(Child& child, SteadyClock::time_point end) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    pollfd waiting{.fd = child.told.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    char bytes[4096];
    const ssize_t got = read(child.told.get(), bytes, sizeof(bytes));
    if (got <= 0) return true;
    child.lines.append(bytes, static_cast<std::size_t>(got));
  }
}

Outcome End(Child& child, bool in_time, Duration limit) {
  if (!in_time) kill(child.process, SIGKILL);
  int status = 0;
  waitpid(child.process, &status, 0);
  if (!in_time) {
    return {.said = "did not end within " + std::to_string(ToSeconds(limit)) + " s"};
  }
  if (const std::optional<Outcome> outcome = FromLines(child.lines)) return *outcome;
  const bool killed = WIFSIGNALED(status);
  return {.said = (killed ? "ended by signal " : "ended without a word, with ") +
                  std::to_string(killed ? WTERMSIG(status) : WEXITSTATUS(status))};
}

}  // namespace

std::vector<Outcome> InProcesses(int size, Duration limit, const MemberCase& run) {
  TACTUS_CHECK(size >= 1);
  const auto end = SteadyClock::now() + limit;
  std::vector<Child> children;
  {
    Wires wires;
    for (int rank = 1; rank < size; ++rank) wires.ids.push_back(MakePipe());
    for (int rank = 0; rank < size; ++rank) children.push_back(Start(rank, wires, run));
  }
  std::vector<Outcome> outcomes;
  for (Child& child : children) {
    const bool in_time = ReadUntil(child, end);
    outcomes.push_back(End(child, in_time, limit));
  }
  return outcomes;
}

}  // namespace tactus::bench::nccl
