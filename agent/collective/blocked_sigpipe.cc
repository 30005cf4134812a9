#include "agent/collective/blocked_sigpipe.h"

#include <csignal>
#include <ctime>

namespace tactus::collective {
namespace {

sigset_t OnlySigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

}  // namespace

BlockedSigpipe::BlockedSigpipe() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t signals = OnlySigpipe();
  pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
}

BlockedSigpipe::~BlockedSigpipe() {
  const sigset_t signals = OnlySigpipe();
  const timespec no_wait = {};
  // What our own writes raised must not be delivered when the mask goes back.
  if (!was_pending_) sigtimedwait(&signals, nullptr, &no_wait);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace tactus::collective
