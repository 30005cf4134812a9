// Bounds what open pages cost the coordinator, however many they are and whatever they ask.

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "runtime/http_server.h"
#include "runtime/now.h"

namespace tactus::page {

// A question that several ask at once, or again within a moment, is asked of the API once; a few
// are under way at a time, the others wait their turn. What the API reads is read on the thread
// that also writes what jobs report, so pages must not keep that thread busy: over time, questions
// are under way for a share of it alone.
// On the server's thread, but where it is said otherwise.
class Answers {
 public:
  struct Limits {
    std::size_t under_way = 4;
    std::size_t waiting = 256;                 // who asks beyond is told to come again
    std::size_t kept = 32;                     // answers
    Duration fresh = std::chrono::seconds(1);  // how long an answer is given again
    double share = 0.5;  // of the time: how long questions are under way; in (0, 1]
    // How long they may be so at once after a quiet time: what pages ask as they open waits for
    // nothing. So much longer they are held against later ones at most, as after a disk that hung.
    Duration burst = std::chrono::seconds(2);
  };
  using Clock = std::function<Instant()>;
  using Give = std::function<void(runtime::HttpResponse)>;
  // Asks; calls `give` once, on any thread.
  using Ask = std::function<void(Give give)>;

  // `server` outlives this object; what is given after the server stopped is dropped.
  explicit Answers(runtime::HttpServer& server) : Answers(server, Limits(), runtime::Now) {}
  Answers(runtime::HttpServer& server, const Limits& limits, Clock clock)
      : server_(server), limits_(limits), clock_(std::move(clock)), allowance_(limits.burst) {}

  // Equal questions have equal answers.
  void Answer(const std::string& question, const Ask& ask, runtime::HttpServer::Reply reply);

 private:
  struct Entry {
    std::vector<runtime::HttpServer::Reply> waiting = {};
    std::optional<runtime::HttpResponse> answer = {};  // unset: under way, or still to be asked
    Instant asked{};
  };

  void Forget(Instant now);
  // Asks what may be asked now; sees to it that the rest is asked later.
  void AskNext();
  void CountTime(Instant now);
  void Take(const std::string& question, const runtime::HttpResponse& answer);

  runtime::HttpServer& server_;
  const Limits limits_;
  const Clock clock_;
  std::map<std::string, Entry> entries_;
  std::deque<std::pair<std::string, Ask>> to_ask_;
  std::size_t under_way_ = 0;
  std::size_t waiting_ = 0;
  // How long questions may still be under way, as of `counted_`; below 0: they were for longer. In
  // [-burst, burst].
  Duration allowance_;
  Instant counted_{};
  bool will_ask_ = false;  // a timer runs
};

}  // namespace tactus::page
