// Which creations are under way or were made lately, by their request ids.

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"

namespace tactus::service {

// Of calls with one request id the first creates and the others wait for what it makes. The store
// knows all that were made; what is kept of them here spares it being asked. One thread.
class RequestIndex {
 public:
  static constexpr std::size_t kRecentMax = 65536;
  static constexpr std::size_t kWaitersMax = 64;  // of one request

  using Answer = std::function<void(absl::StatusOr<job::JobRecord>)>;

  // The name of the job that the request made; null: not known here.
  const std::string* Recent(const std::string& request) const;

  // Appends the call to those of its request. kFirst: the caller creates, then calls End; kFull: it
  // was not appended, too many wait.
  enum class Place { kFirst, kBehind, kFull };
  Place Begin(const std::string& request, Answer answer);

  // Answers all calls of the request.
  void End(const std::string& request, const absl::StatusOr<job::JobRecord>& record);

  // The job that it made is no more.
  void Forget(const std::string& request) { recent_.erase(request); }

 private:
  std::map<std::string, std::vector<Answer>> under_way_;
  std::map<std::string, std::string> recent_;  // the name of its job
  std::deque<std::string> order_;              // of recent_, oldest first; may name some that left
};

}  // namespace tactus::service
