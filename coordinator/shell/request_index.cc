#include "coordinator/shell/request_index.h"

#include <utility>

namespace tactus::service {

const std::string* RequestIndex::Recent(const std::string& request) const {
  const auto found = recent_.find(request);
  return found == recent_.end() ? nullptr : &found->second;
}

RequestIndex::Place RequestIndex::Begin(const std::string& request, Answer answer) {
  const auto [entry, first] = under_way_.try_emplace(request);
  if (entry->second.size() >= kWaitersMax) return Place::kFull;
  entry->second.push_back(std::move(answer));
  return first ? Place::kFirst : Place::kBehind;
}

void RequestIndex::End(const std::string& request, const absl::StatusOr<job::JobRecord>& record) {
  if (record.ok() && recent_.insert_or_assign(request, record->name).second) {
    order_.push_back(request);
    if (order_.size() > kRecentMax) {
      recent_.erase(order_.front());
      order_.pop_front();
    }
  }
  const auto calls = under_way_.extract(request);
  if (!calls) return;
  for (const Answer& answer : calls.mapped()) answer(record);
}

}  // namespace tactus::service
