// The worker's life and the program that it trains, in turns on the program's thread.
//
// A program has a loop of its own, and so has a worker's life. The life is a fiber that runs within
// the program's calls: where it needs the program it asks, and stands still until it is answered.
// So neither is turned inside out, no call goes from here into the program, and no thread has to be
// woken for what takes less time than that.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/time.h"
#include "fibers/fiber.h"
#include "sdk/request.h"

namespace tactus::sdk {

// One call at a time.
class Turns {
 public:
  // Runs whenever the program awaits something.
  explicit Turns(std::function<void()> life) : life_(std::move(life), kStackBytes) {}

  // ---- The life's side

  // Stands still until the answer. After Close it is an error at once.
  Answer Ask(const Request& request);
  // To be called now and then while it waits for somebody else: it stands still where the program
  // has waited as long as it wanted to. Why not to wait on; empty: to do so.
  std::string WhyGiveUp();

  // ---- The program's side

  // What is asked, which stays until it is answered; null: nothing was in about `limit`, or the
  // life has ended.
  const Request* Await(Duration limit);
  // Requires: something is asked.
  void Reply(Answer answer);
  // Whatever is asked, and will be, is answered so.
  void Close(const absl::Status& status);
  // Nor is anybody else waited for. Behind Close.
  void GiveUp() { gives_up_ = true; }
  bool ended() const { return life_.ended(); }

  // ---- Either side's

  // Whether the life runs now, so that Ask may be called.
  bool lives() const { return lives_; }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{8} << 20;  // as threads have

  fibers::Fiber life_;
  std::chrono::steady_clock::time_point turn_ends_{};  // the life's, where it only waits
  const Request* request_ = nullptr;
  std::optional<Answer> answer_;
  absl::Status closed_;
  bool gives_up_ = false;
  bool lives_ = false;
};

}  // namespace tactus::sdk
