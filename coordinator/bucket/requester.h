// Requests to a server of buckets, signed and tried again.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "coordinator/bucket/answers.h"
#include "coordinator/bucket/bucket_options.h"
#include "threads/mutex.h"

namespace tactus::bucket {

struct Request {
  std::string method = "GET";  // GET, HEAD, PUT, POST, DELETE
  std::string key = {};        // of the object, with the prefix; empty: the bucket itself
  // name=value&name=value, sorted by name, each PercentEncoded: it is signed as it stands.
  std::string query = {};
  std::string_view body = {};  // of PUT and POST; outlives the call
  std::string body_sha256{};   // empty: it is computed
  struct Range {
    std::uint64_t offset = 0;
    std::size_t count = 0;  // > 0
  };
  std::optional<Range> range = {};  // of GET: the answer has just so many bytes
  bool only_new = false;            // of PUT: 412 where there is such an object already
  int attempts = 0;                 // 0: the options'
};

// One attempt at a request.
struct Attempted {
  std::string_view method{};  // of HTTP
  // ok; absent, there is no such object; refused, it would be again; busy, it may pass later;
  // broken, no answer came, or not all of it.
  std::string_view outcome{};
  Duration took{};
};

// Whoever calls waits; as many at once as there are threads, each on a connection of its own, which
// is kept for the next. Any thread.
class Requester {
 public:
  explicit Requester(BucketOptions options);
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // What the server said, also if that is no; what may pass (MayPass, connections that fail or
  // break, answers that end too early) is tried again first. Errors: Unavailable, still so at the
  // last attempt; FailedPrecondition, there are no keys, or the server's certificate is not to be
  // trusted; Cancelled, Stop.
  absl::StatusOr<Answer> Send(const Request& request);

  // Is told of each attempt that Stop did not end, on whichever thread made it. Before a second
  // thread calls.
  void Watch(std::function<void(const Attempted&)> watch) { watch_ = std::move(watch); }

  // What is under way, and comes, ends with Cancelled within a second. Any thread.
  void Stop();

  const BucketOptions& options() const { return options_; }
  Asked AskedOf(const Request& request) const;

 private:
  struct Connection;
  absl::StatusOr<Answer> Attempt(const Request& request, const std::string& body_sha256);
  void Tell(const Request& request, const absl::StatusOr<Answer>& answer, Instant began) const;
  static absl::Status Failure(const Connection& connection, int code, const Asked& asked);
  void Configure(Connection& connection, const Keys& keys) const;
  void SetRequest(void* curl, const Request& request) const;
  std::unique_ptr<Connection> TakeConnection();
  void GiveBack(std::unique_ptr<Connection> connection);
  bool WaitBefore(Duration delay);

  const BucketOptions options_;
  const Place place_;
  const std::string address_;
  std::function<void(const Attempted&)> watch_ = [](const Attempted&) {};
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> draws_ = 0;
  threads::Mutex mutex_;
  threads::Condition stopped_;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::bucket
