#include "coordinator/page/answers.h"

#include <utility>

namespace tactus::page {

void Answers::Answer(const std::string& question, const Ask& ask, Instant now,
                     runtime::HttpServer::Reply reply) {
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
  entry->second.asked = now;
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

void Answers::AskNext() {
  while (under_way_ < limits_.under_way && !to_ask_.empty()) {
    const auto [question, ask] = std::move(to_ask_.front());
    to_ask_.pop_front();
    ++under_way_;
    ask([this, &server = server_, question = question](runtime::HttpResponse answer) {
      server.Post([this, question, answer = std::move(answer)] { Take(question, answer); });
    });
  }
}

void Answers::Take(const std::string& question, const runtime::HttpResponse& answer) {
  --under_way_;
  Entry& entry = entries_.at(question);
  entry.answer = answer;
  waiting_ -= entry.waiting.size();
  for (const runtime::HttpServer::Reply& reply : std::exchange(entry.waiting, {})) reply(answer);
  AskNext();
}

}  // namespace tactus::page
