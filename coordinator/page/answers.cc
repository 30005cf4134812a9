#include "coordinator/page/answers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tactus::page {
namespace {

// Rounding must not make a timer fire too early again and again.
constexpr Duration kPauseMin = std::chrono::milliseconds(1);

}  // namespace

void Answers::Answer(const std::string& question, const Ask& ask,
                     runtime::HttpServer::Reply reply) {
  const Instant now = clock_();
  const auto found = entries_.find(question);
  if (found != entries_.end() && found->second.answer.has_value()) {
    if (now - found->second.asked < limits_.fresh) return reply(*found->second.answer);
    entries_.erase(found);
  }
  if (waiting_ >= limits_.waiting) {
    return reply(runtime::PlainLine(503, "too many questions wait; ask again in a moment"));
  }
  ++waiting_;
  const auto [entry, is_new] = entries_.try_emplace(question);
  entry->second.waiting.push_back(std::move(reply));
  if (!is_new) return;
  to_ask_.emplace_back(question, ask);
  AskNext();
  Forget(now);
}

// Answers that are old, and the oldest of too many.
void Answers::Forget(Instant now) {
  std::size_t kept = 0;
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (entry.answer.has_value() && now - entry.asked >= limits_.fresh) {
      it = entries_.erase(it);
      continue;
    }
    if (entry.answer.has_value()) {
      ++kept;
      if (oldest == entries_.end() || entry.asked < oldest->second.asked) oldest = it;
    }
    ++it;
  }
  if (kept > limits_.kept) entries_.erase(oldest);
}

void Answers::CountTime(Instant now) {
  const Duration passed = now - counted_;
  counted_ = now;
  allowance_ += std::chrono::duration_cast<Duration>(limits_.share * passed);
  if (under_way_ > 0) allowance_ -= passed;
  allowance_ = std::clamp(allowance_, -limits_.burst, limits_.burst);
}

void Answers::AskNext() {
  const Instant now = clock_();
  CountTime(now);
  while (under_way_ < limits_.under_way && !to_ask_.empty() && allowance_ > Duration::zero()) {
    const auto [question, ask] = std::move(to_ask_.front());
    to_ask_.pop_front();
    ++under_way_;
    entries_.at(question).asked = now;
    ask([this, &server = server_, question = question](runtime::HttpResponse answer) {
      server.Post([this, question, answer = std::move(answer)] { Take(question, answer); });
    });
  }
  // While some are under way, the answer to one of them comes back here.
  if (to_ask_.empty() || under_way_ > 0 || will_ask_) return;
  will_ask_ = true;
  const auto pause = std::chrono::duration_cast<Duration>(-allowance_ / limits_.share);
  server_.PostAfter(std::max<Duration>(pause, kPauseMin), [this] {
    will_ask_ = false;
    AskNext();
  });
}

void Answers::Take(const std::string& question, const runtime::HttpResponse& answer) {
  CountTime(clock_());
  --under_way_;
  Entry& entry = entries_.at(question);
  entry.answer = answer;
  waiting_ -= entry.waiting.size();
  for (const runtime::HttpServer::Reply& reply : std::exchange(entry.waiting, {})) reply(answer);
  AskNext();
}

}  // namespace tactus::page
