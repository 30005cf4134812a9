#include "agent/collective/newcomers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tactus::collective {

bool Newcomers::Accept(const Descriptor& listener, std::string& why) {
  for (std::size_t taken = 0; taken < limits_.at_once; ++taken) {
    Descriptor next = collective::Accept(listener, why);
    if (!next.open()) return why.empty();
    std::string host = HostOf(next);
    all_.push_back({.introduction = Introduction::Accept(std::move(next), party_, word_),
                    .host = std::move(host),
                    .deadline = DeadlineAfter(limits_.patience)});
  }
  return true;
}

std::vector<Newcomers::Arrived> Newcomers::Hear() {
  std::vector<Arrived> arrived;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> alike;  // by rank and lane
  std::erase_if(all_, [&](Newcomer& one) {
    Introduction& introduction = *one.introduction;
    const Introduction::State state = introduction.Advance();
    const std::optional<Hello>& hello = introduction.hello();
    if (state == Introduction::State::kRefused) {
      if (!introduction.refusal().empty()) Refuse(one.host, introduction.refusal());
      return true;
    }
    if (state == Introduction::State::kDone) {
      arrived.push_back(
          {.rank = hello->from, .lane = hello->lane, .connection = introduction.Take()});
      return true;
    }
    // Whoever has overheard a member's first word can say it again, behind that member.
    if (hello && ++alike[{hello->from, hello->lane}] > limits_.alike) {
      Refuse(one.host, "it says what rank " + std::to_string(hello->from) + " has said");
      return true;
    }
    if (hello || MillisecondsUntil(one.deadline) > 0) return false;
    Refuse(one.host, "it did not greet in time");
    return true;
  });
  MakeRoom();
  return arrived;
}

// After all were heard: whose first word is there is none of these.
void Newcomers::MakeRoom() {
  const auto unknown = [](const Newcomer& one) { return !one.introduction->hello(); };
  auto strangers = static_cast<std::size_t>(std::ranges::count_if(all_, unknown));
  std::map<std::string, std::size_t> by_host;
  if (strangers > limits_.strangers) {
    for (const Newcomer& one : all_) by_host[one.host] += unknown(one) ? 1 : 0;
  }
  for (; strangers > limits_.strangers; --strangers) {
    const auto most = std::ranges::max_element(
        by_host, {}, [](const auto& host_and_count) { return host_and_count.second; });
    const auto oldest = std::ranges::find_if(
        all_, [&](const Newcomer& one) { return unknown(one) && one.host == most->first; });
    Refuse(oldest->host, "too many from there have not greeted");
    all_.erase(oldest);
    --most->second;
  }
}

void Newcomers::Want(std::vector<pollfd>& wanted) const {
  for (const Newcomer& one : all_) {
    const int events = one.introduction->wants_write() ? POLLOUT : POLLIN;
    wanted.push_back(
        {.fd = one.introduction->descriptor(), .events = static_cast<short>(events), .revents = 0});
  }
}

void Newcomers::RefuseSecond(std::uint32_t rank) {
  Refuse("", "a second one of rank " + std::to_string(rank));
}

void Newcomers::Refuse(const std::string& host, const std::string& why) {
  if (refused_++ > 0) return;
  first_refusal_ = host.empty() ? why : "from " + host + ": " + why;
}

std::string Newcomers::Told() const {
  if (refused_ == 0) return "";
  if (refused_ == 1) return "a connection to this worker was refused, " + first_refusal_;
  return std::to_string(refused_) + " connections to this worker were refused, the first " +
         first_refusal_;
}

}  // namespace tactus::collective
