#include "agent/daemon/outbound_log.h"

#include <algorithm>
#include <utility>

namespace tactus::agent {

bool OutboundLog::HasRoomFor(std::size_t payload_bytes) const {
  return size() < options_.entries_max && bytes_ + payload_bytes <= options_.bytes_max;
}

bool OutboundLog::HasLogRoomFor(std::size_t payload_bytes) const {
  return log_entries_ < options_.log_entries_max &&
         log_bytes_ + payload_bytes <= options_.log_bytes_max && HasRoomFor(payload_bytes);
}

void OutboundLog::Count(const std::string& payload, Importance importance) {
  bytes_ += payload.size();
  if (importance != Importance::kLogLines) return;
  log_bytes_ += payload.size();
  ++log_entries_;
}

void OutboundLog::Discount(const std::string& payload, Importance importance) {
  bytes_ -= payload.size();
  if (importance != Importance::kLogLines) return;
  log_bytes_ -= payload.size();
  --log_entries_;
}

bool OutboundLog::DropOldest(Importance importance) {
  std::size_t& waiting = importance == Importance::kLogLines ? waiting_logs_ : waiting_reports_;
  if (waiting == 0) return false;
  const auto oldest = std::ranges::find(waiting_, importance, &Waiting::importance);
  Discount(oldest->payload, importance);
  waiting_.erase(oldest);
  --waiting;
  if (importance == Importance::kReport) ++dropped_;
  return true;
}

void OutboundLog::Keep(std::string payload, Importance importance) {
  Count(payload, importance);
  if (importance == Importance::kReport) ++waiting_reports_;
  if (importance == Importance::kLogLines) ++waiting_logs_;
  waiting_.push_back({.payload = std::move(payload), .importance = importance});
}

bool OutboundLog::AppendLogLines(std::string payload) {
  while (!HasLogRoomFor(payload.size())) {
    if (!DropOldest(Importance::kLogLines)) return false;
  }
  Keep(std::move(payload), Importance::kLogLines);
  return true;
}

bool OutboundLog::Append(std::string payload, Importance importance) {
  if (importance == Importance::kLogLines) return AppendLogLines(std::move(payload));
  while (!HasRoomFor(payload.size())) {
    if (DropOldest(Importance::kLogLines) || DropOldest(Importance::kReport)) continue;
    if (importance >= Importance::kExit) break;
    if (importance == Importance::kReport) ++dropped_;
    return false;
  }
  Keep(std::move(payload), importance);
  return true;
}

const OutboundLog::Entry* OutboundLog::Next() {
  if (resend_ < in_flight_.size()) return &in_flight_[resend_++];
  if (waiting_.empty() || in_flight_.size() >= options_.in_flight_max) return nullptr;
  Waiting& first = waiting_.front();
  if (first.importance == Importance::kReport) --waiting_reports_;
  if (first.importance == Importance::kLogLines) --waiting_logs_;
  in_flight_.push_back({.sequence = ++last_sequence_,
                        .payload = std::move(first.payload),
                        .importance = first.importance});
  waiting_.pop_front();
  // All in flight were sent, and so is this one.
  ++resend_;
  return &in_flight_.back();
}

void OutboundLog::Acknowledge(std::uint64_t sequence) {
  while (!in_flight_.empty() && in_flight_.front().sequence <= sequence) {
    Discount(in_flight_.front().payload, in_flight_.front().importance);
    in_flight_.pop_front();
    if (resend_ > 0) --resend_;
  }
}

void OutboundLog::ForEach(Importance importance,
                          const std::function<void(const std::string&)>& see) const {
  for (const auto& entry : in_flight_) {
    if (entry.importance == importance) see(entry.payload);
  }
  for (const auto& entry : waiting_) {
    if (entry.importance == importance) see(entry.payload);
  }
}

bool OutboundLog::HoldsWords() const {
  const auto word = [](const auto& entry) {
    return entry.importance == Importance::kMessage || entry.importance == Importance::kExit;
  };
  return std::ranges::any_of(in_flight_, word) || std::ranges::any_of(waiting_, word);
}

void OutboundLog::Rewind(std::uint64_t acknowledged) {
  Acknowledge(acknowledged);
  resend_ = 0;
}

}  // namespace tactus::agent
