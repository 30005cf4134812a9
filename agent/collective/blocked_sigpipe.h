// Gloo writes to sockets without asking for errors instead of signals; this asks for it.

#pragma once

#include <csignal>

namespace tactus::collective {

// While it lives, a write of this thread to a closed connection is an error and no SIGPIPE. Threads
// started meanwhile inherit that for good. Destroyed by the thread that made it.
class BlockedSigpipe {
 public:
  BlockedSigpipe();
  ~BlockedSigpipe();
  BlockedSigpipe(const BlockedSigpipe&) = delete;
  BlockedSigpipe& operator=(const BlockedSigpipe&) = delete;

 private:
  bool was_pending_ = false;
  sigset_t mask_before_;
};

}  // namespace tactus::collective
