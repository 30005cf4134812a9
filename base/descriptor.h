// A file descriptor that closes itself.

#pragma once

#include <unistd.h>

#include <utility>

namespace tactus {

// Owns a descriptor of the system's: a file, a socket, a pipe. -1: none. Not thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return value_; }
  bool open() const { return value_ >= 0; }

  // Whoever gets it closes it.
  int Release() { return std::exchange(value_, -1); }

  void Close() {
    if (open()) ::close(Release());
  }

 private:
  int value_ = -1;
};

}  // namespace tactus
