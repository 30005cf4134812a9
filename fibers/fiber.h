// A thread of control that is switched by hand: code that waits in the middle of a call can run in
// virtual time, or in turns with the program that called it, as it is. The one home of
// Boost.Context is its .cc.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tactus::fibers {

// A function with a stack of its own, of which a part runs whenever it is resumed. By one thread at
// a time, which need not be the same each time: so nothing of a thread's, such as a lock, may be
// held over a Suspend.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 256 * 1024;  // touched pages alone cost memory

  // `body` runs at the first Resume, and throws nothing.
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = kStackBytes);

  // Requires: it has ended or was never resumed, as nobody would clean its stack up.
  ~Fiber();

  // Runs the body until it suspends or ends. Not from within a fiber.
  void Resume();

  // Returns to whom resumed it, until the next Resume. From within this fiber.
  void Suspend();

  bool ended() const { return ended_; }

 private:
  struct Contexts;

  const std::unique_ptr<Contexts> contexts_;
  std::function<void()> body_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace tactus::fibers
