#include "agent/daemon/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/process.h"

namespace tactus::agent {
namespace {

bool Adopts() {
  int adopts = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0) == 0 && adopts != 0;
}

// Of all threads: any of them may have been given one.
std::set<pid_t> Children() {
  std::set<pid_t> children;
  for (const std::string& thread : runtime::NamesIn("/proc/self/task")) {
    std::ifstream in("/proc/self/task/" + thread + "/children");
    for (pid_t child = 0; in >> child;) children.insert(child);
  }
  return children;
}

}  // namespace

void AdoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::size_t EndOrphans(const std::set<pid_t>& own) {
  if (!Adopts()) return 0;
  std::size_t left = 0;
  for (const pid_t child : Children()) {
    if (own.contains(child)) continue;
    if (::waitpid(child, nullptr, WNOHANG) == child) continue;
    // Its parent has ended, and who started it all still runs: it goes with that one's group.
    if (own.contains(::getsid(child))) continue;
    ::kill(child, SIGKILL);
    ++left;
  }
  return left;
}

}  // namespace tactus::agent
