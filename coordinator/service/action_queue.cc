#include "coordinator/service/action_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tactus::service {

void ActionQueue::Push(job::Actions actions, std::function<void()> done) {
  List list;
  list.done = std::move(done);
  for (job::Action& action : actions) {
    if (auto* persist = std::get_if<job::PersistJob>(&action)) {
      jobs_.insert_or_assign(persist->record.id, std::move(persist->record));
      ++waiting_;
      list.actions.push_back(job::PersistJob{});
    } else if (auto* round = std::get_if<job::PersistRound>(&action)) {
      rounds_.push_back(std::move(round->round));
    } else {
      list.actions.push_back(std::move(action));
    }
  }
  lists_.push_back(std::move(list));
  if (waiting_ > 0 && !writing_ && !failed_) StartWrite();
  Drain();
}

void ActionQueue::Drop(const std::string& node) {
  for (List& list : lists_) {
    std::erase_if(list.actions, [&](const job::Action& action) {
      const std::string* const addressee = job::NodeOf(action);
      return addressee != nullptr && *addressee == node;
    });
  }
}

void ActionQueue::StartWrite() {
  if (batch_.jobs.empty() && batch_.rounds.empty()) {
    in_write_ = std::exchange(waiting_, 0);
    for (auto& [id, record] : jobs_) batch_.jobs.push_back(std::move(record));
    jobs_.clear();
    batch_.rounds = std::exchange(rounds_, {});
  }
  writing_ = true;
  hooks_.write(batch_);
}

void ActionQueue::OnWritten(const absl::Status& status) {
  writing_ = false;
  failed_ = !status.ok();
  if (failed_) {
    const std::size_t excess = rounds_.size() - std::min(rounds_.size(), kRoundsMax);
    rounds_.erase(rounds_.begin(), std::next(rounds_.begin(), static_cast<std::ptrdiff_t>(excess)));
    return;
  }
  batch_ = {};
  durable_ += std::exchange(in_write_, 0);
  if (waiting_ > 0) StartWrite();
  Drain();
}

void ActionQueue::Flush() {
  if (writing_ || (!failed_ && rounds_.empty())) return;
  failed_ = false;
  StartWrite();
}

void ActionQueue::Drain() {
  if (draining_) return;
  draining_ = true;
  while (!lists_.empty()) {
    List& list = lists_.front();
    if (list.actions.empty()) {
      const std::function<void()> done = std::move(list.done);
      lists_.pop_front();
      if (done) done();
      continue;
    }
    if (std::holds_alternative<job::PersistJob>(list.actions.front())) {
      if (durable_ == 0) break;
      --durable_;
      list.actions.pop_front();
      continue;
    }
    const job::Action action = std::move(list.actions.front());
    list.actions.pop_front();
    hooks_.perform(action);
  }
  draining_ = false;
}

}  // namespace tactus::service
