// A real coordinator that can be killed and started again over the same state.

#pragma once

#include <sys/types.h>

#include <string>

namespace tactus {

// Its folder is made at construction and removed at the end. One thread.
class CoordinatorProcess {
 public:
  CoordinatorProcess();
  ~CoordinatorProcess();  // Kill()
  CoordinatorProcess(const CoordinatorProcess&) = delete;
  CoordinatorProcess& operator=(const CoordinatorProcess&) = delete;

  // Starts it and waits until it serves; returns its address, empty when it does not within 30 s.
  std::string Start();

  // kill -9, and waits until it is gone.
  void Kill();

  // What it wrote to standard error, all lives after one another.
  std::string Log() const;

 private:
  std::string folder_;
  pid_t process_ = 0;  // 0: none
};

}  // namespace tactus
