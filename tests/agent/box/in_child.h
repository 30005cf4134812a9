// A piece of a test in a process of its own, which may be put into a box.

#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace tactus::box {

// What `body` returns, 0 to 125, in a child; -1 when a signal ended it.
inline int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tactus::box
