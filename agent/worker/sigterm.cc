#include "agent/worker/sigterm.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace tactus::worker {
namespace {

std::atomic<std::uint32_t> kept = 0;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Async-signal-safe calls only. What is raised comes when the handler returns.
void OnSigterm(int number, siginfo_t* sent, void*) {
  if (sent->si_pid != ::getppid()) {
    ++kept;
    return;
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void KeepSigterm() {
  struct sigaction action = {};
  action.sa_sigaction = OnSigterm;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::uint32_t SigtermsKept() { return kept; }

}  // namespace tactus::worker
