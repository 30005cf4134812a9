#include "coordinator/shell/event_history.h"

#include <charconv>
#include <utility>

#include "runtime/status.h"

namespace tactus::service {
namespace {

// What an event costs beside its own size.
constexpr std::size_t kOverheadBytes = 256;

struct TokenParts {
  std::string uid;
  std::string life;
  std::uint64_t number = 0;
};

// UID.LIFE.NUMBER.
bool Parse(const std::string& text, TokenParts& token) {
  const std::size_t second = text.rfind('.');
  if (second == std::string::npos || second == 0) return false;
  const std::size_t first = text.rfind('.', second - 1);
  if (first == std::string::npos) return false;
  token.uid = text.substr(0, first);
  token.life = text.substr(first + 1, second - first - 1);
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + second + 1, end, token.number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

absl::Status NoToken(const std::string& why) {
  return runtime::InvalidFields(
      {{.field = "resume_token", .description = why + ", allowed is one of an event of this job"}});
}

absl::Status Expired(const std::string& why) {
  return runtime::WithReason(
      absl::OutOfRangeError("resume_token: " + why + "; watch without a token"),
      {.reason = "WATCH_EXPIRED"});
}

}  // namespace

void EventHistory::Keep(JobId job, const std::string& uid) {
  rings_.try_emplace(job, Ring{.uid = uid, .from = last_number_, .numbers = {}});
}

SharedEvent EventHistory::Add(JobId job, v1::JobEvent event) {
  Ring& ring = rings_.at(job);
  const std::uint64_t number = ++last_number_;
  event.set_resume_token(TokenAt(ring.uid, number));
  const std::size_t bytes = event.SpaceUsedLong() + kOverheadBytes;
  const SharedEvent shared = std::make_shared<const v1::JobEvent>(std::move(event));
  events_.emplace(number, Kept{.job = job, .event = shared, .bytes = bytes});
  ring.numbers.push_back(number);
  bytes_ += bytes;
  if (ring.numbers.size() > kEventsMax) DropOldest(ring);
  // Numbers grow over all jobs: the oldest event of all is the oldest of its own ring.
  while (bytes_ > kBytesMax) DropOldest(rings_.at(events_.begin()->second.job));
  return shared;
}

void EventHistory::DropOldest(Ring& ring) {
  const auto kept = events_.find(ring.numbers.front());
  bytes_ -= kept->second.bytes;
  ring.from = kept->first;
  ring.numbers.pop_front();
  events_.erase(kept);
}

std::string EventHistory::TokenAt(const std::string& uid, std::uint64_t number) const {
  return uid + "." + life_ + "." + std::to_string(number);
}

std::string EventHistory::Token(const std::string& uid) const { return TokenAt(uid, last_number_); }

absl::StatusOr<std::vector<SharedEvent>> EventHistory::After(JobId job, const std::string& uid,
                                                             const std::string& text) const {
  TokenParts token;
  if (!Parse(text, token)) return NoToken("is not a resume token");
  if (token.uid != uid) return NoToken("found a token of another job");
  if (token.life != life_) return Expired("the coordinator was restarted since");
  if (token.number > last_number_) return NoToken("found a token of an event that never was");
  const auto ring = rings_.find(job);
  if (ring == rings_.end() || token.number < ring->second.from) {
    return Expired("the events that followed are not kept any more");
  }
  std::vector<SharedEvent> events;
  for (const std::uint64_t number : ring->second.numbers) {
    if (number > token.number) events.push_back(events_.at(number).event);
  }
  return events;
}

void EventHistory::Over(JobId job) {
  if (!Keeps(job)) return;
  over_.push_back(job);
  if (over_.size() <= kOverMax) return;
  Forget(over_.front());
  over_.pop_front();
}

void EventHistory::Forget(JobId job) {
  const auto ring = rings_.find(job);
  if (ring == rings_.end()) return;
  while (!ring->second.numbers.empty()) DropOldest(ring->second);
  rings_.erase(ring);
}

}  // namespace tactus::service
