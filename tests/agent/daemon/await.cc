#include "tests/agent/daemon/await.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tactus::agent {

bool AwaitProcessEnd(int pid) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return true;
  pollfd watched{.fd = descriptor, .events = POLLIN, .revents = 0};
  const int ready = ::poll(
      &watched, 1,
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count()));
  ::close(descriptor);
  return ready == 1;
}

}  // namespace tactus::agent
