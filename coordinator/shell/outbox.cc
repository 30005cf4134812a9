#include "coordinator/shell/outbox.h"

#include <utility>

namespace tactus::service {

bool Outbox::Append(agent::v1::ToAgent message) {
  if (messages_.size() == kMessagesMax) return false;
  message.set_sequence(++last_sequence_);
  messages_.push_back(std::move(message));
  return true;
}

const agent::v1::ToAgent* Outbox::Next() {
  return sent_ == messages_.size() ? nullptr : &messages_[sent_++];
}

void Outbox::Acknowledge(std::uint64_t sequence) {
  while (!messages_.empty() && messages_.front().sequence() <= sequence) {
    messages_.pop_front();
    if (sent_ > 0) --sent_;
  }
}

void Outbox::Rewind(std::uint64_t sequence) {
  Acknowledge(sequence);
  sent_ = 0;
}

void Outbox::Restart(std::uint64_t sequence) {
  messages_.clear();
  sent_ = 0;
  last_sequence_ = sequence;
}

}  // namespace tactus::service
