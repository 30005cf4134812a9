#include "agent/daemon/outbound_log.h"

#include <algorithm>
#include <utility>

namespace tactus::agent {

bool OutboundLog::HasRoomFor(std::size_t payload_bytes) const {
  return size() < options_.entries_max && bytes_ + payload_bytes <= options_.bytes_max;
}

bool OutboundLog::DropOldestReport() {
  if (waiting_reports_ == 0) return false;
  const auto oldest = std::ranges::find(waiting_, Importance::kReport, &Waiting::importance);
  bytes_ -= oldest->payload.size();
  waiting_.erase(oldest);
  --waiting_reports_;
  ++dropped_;
  return true;
}

bool OutboundLog::Append(std::string payload, Importance importance) {
  while (!HasRoomFor(payload.size())) {
    if (DropOldestReport()) continue;
    if (importance == Importance::kExit) break;
    if (importance == Importance::kReport) ++dropped_;
    return false;
  }
  bytes_ += payload.size();
  if (importance == Importance::kReport) ++waiting_reports_;
  waiting_.push_back({.payload = std::move(payload), .importance = importance});
  return true;
}

const OutboundLog::Entry* OutboundLog::Next() {
  if (resend_ < in_flight_.size()) return &in_flight_[resend_++];
  if (waiting_.empty() || in_flight_.size() >= options_.in_flight_max) return nullptr;
  Waiting& first = waiting_.front();
  if (first.importance == Importance::kReport) --waiting_reports_;
  in_flight_.push_back({.sequence = ++last_sequence_, .payload = std::move(first.payload)});
  waiting_.pop_front();
  ++resend_;
  return &in_flight_.back();
}

void OutboundLog::Acknowledge(std::uint64_t sequence) {
  while (!in_flight_.empty() && in_flight_.front().sequence <= sequence) {
    bytes_ -= in_flight_.front().payload.size();
    in_flight_.pop_front();
    if (resend_ > 0) --resend_;
  }
}

void OutboundLog::Rewind(std::uint64_t acknowledged) {
  Acknowledge(acknowledged);
  resend_ = 0;
}

}  // namespace tactus::agent
