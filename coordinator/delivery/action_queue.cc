#include "coordinator/delivery/action_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tactus::delivery {
namespace {

template <typename T>
void KeepNewest(std::size_t most, std::vector<T>& items) {
  if (items.size() <= most) return;
  items.erase(items.begin(), std::prev(items.end(), static_cast<std::ptrdiff_t>(most)));
}

}  // namespace

void ActionQueue::Push(job::Actions actions, Done done) {
  List list;
  list.done = std::move(done);
  for (job::Action& action : actions) {
    if (auto* persist = std::get_if<job::PersistJob>(&action)) {
      // The record goes with the next write, the newest of a job alone; what stays in the list is
      // its place, which holds up all that follows. Places are counted, not named: writes take them
      // in order.
      jobs_.insert_or_assign(persist->record.id, std::move(persist->record));
      ++waiting_;
      list.actions.push_back(job::PersistJob{});
    } else if (auto* mark = std::get_if<job::PersistNode>(&action)) {
      nodes_.insert_or_assign(mark->node.name, mark->node);
      ++waiting_;
      list.actions.push_back(job::PersistJob{});
    } else if (auto* round = std::get_if<job::PersistRound>(&action)) {
      // Nothing that is seen depends on it: no place in the list.
      rounds_.push_back(std::move(round->round));
    } else if (const auto* validated = std::get_if<job::PersistValidation>(&action)) {
      validations_.push_back(validated->validation);
    } else if (const auto* forget = std::get_if<job::ForgetRounds>(&action)) {
      Forget(*forget);
    } else if (auto* decided = std::get_if<job::PersistDecision>(&action)) {
      decisions_.push_back({.job = decided->job, .decision = std::move(decided->decision)});
    } else if (auto* learned = std::get_if<job::PersistMemory>(&action)) {
      memories_.insert_or_assign(learned->memory.job, std::move(learned->memory.memory));
    } else if (const auto* found = std::get_if<job::PersistPrior>(&action)) {
      priors_.insert_or_assign(found->prior.key, found->prior);
    } else {
      list.actions.push_back(std::move(action));
    }
  }
  // After Close() records are still written, but nobody is told of them.
  if (!closed_) {
    lists_.push_back(std::move(list));
  } else if (list.done) {
    list.done(false);
  }
  if (waiting_ > 0 && !writing_ && !failed_) StartWrite();
  Drain();
}

// What waits to be written goes as well; what is being written goes with the next write.
void ActionQueue::Forget(const job::ForgetRounds& action) {
  std::erase_if(rounds_, [&action](const job::RoundRecord& round) {
    return round.job == action.job && round.round >= action.from;
  });
  std::erase_if(validations_, [&action](const job::ValidationRecord& validation) {
    return validation.job == action.job && validation.rounds > action.from;
  });
  forgotten_.push_back({.job = action.job, .from = action.from});
}

void ActionQueue::Close() {
  closed_ = true;
  for (const List& list : std::exchange(lists_, {})) {
    if (list.done) list.done(false);
  }
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
  // A batch that failed is tried again as it is: what came since is newer, and goes after it.
  if (batch_.jobs.empty() && batch_.nodes.empty() && batch_.rounds.empty() &&
      batch_.decisions.empty() && batch_.forgotten.empty() && batch_.memories.empty() &&
      batch_.priors.empty() && batch_.validations.empty()) {
    in_write_ = std::exchange(waiting_, 0);
    for (auto& [id, record] : jobs_) batch_.jobs.push_back(std::move(record));
    jobs_.clear();
    for (auto& [name, node] : nodes_) batch_.nodes.push_back(std::move(node));
    nodes_.clear();
    batch_.forgotten = std::exchange(forgotten_, {});
    batch_.rounds = std::exchange(rounds_, {});
    batch_.validations = std::exchange(validations_, {});
    batch_.decisions = std::exchange(decisions_, {});
    for (auto& [job, memory] : std::exchange(memories_, {})) {
      batch_.memories.push_back({.job = job, .memory = std::move(memory)});
    }
    for (auto& [key, prior] : std::exchange(priors_, {})) batch_.priors.push_back(std::move(prior));
  }
  writing_ = true;
  hooks_.write(batch_);
}

void ActionQueue::OnWritten(bool durable) {
  writing_ = false;
  failed_ = !durable;
  if (failed_) {
    KeepNewest(kRoundsMax, rounds_);
    KeepNewest(kValidationsMax, validations_);
    KeepNewest(kDecisionsMax, decisions_);
    return;
  }
  batch_ = {};
  durable_ += std::exchange(in_write_, 0);
  if (waiting_ > 0) StartWrite();
  Drain();
}

void ActionQueue::Flush() {
  Drain();
  if (writing_ || (!failed_ && !AnyHistory())) return;
  failed_ = false;
  StartWrite();
}

void ActionQueue::Drain() {
  // perform() and `done` may push: what they add is the turn of the loop that called them.
  if (draining_) return;
  draining_ = true;
  while (!lists_.empty() && !(hooks_.held && hooks_.held())) {
    List& list = lists_.front();
    if (list.actions.empty()) {
      // Out of the queue before the call, which may push, drop or close. The same below.
      const Done done = std::move(list.done);
      lists_.pop_front();
      if (done) done(true);
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

}  // namespace tactus::delivery
