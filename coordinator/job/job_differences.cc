// The part of JobController that hears of members that held wrong parameters. They hold the right
// ones again: nothing has to be done for the group.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

void JobController::On(std::uint32_t rank, const DifferedMessage& message, Turn turn) {
  const bool counts = keeper_.tracker() && !keeper_.Secured();
  if (!counts || message.generation != record().generation || message.wrong.empty()) return;
  std::vector<MemberRecord> wrong;
  for (const std::uint32_t each : message.wrong) {
    if (each >= size() || each == rank) return;
    wrong.push_back(group_.members()[each]);
  }
  JobRecord& record = keeper_.record();
  ++record.differences;
  record.difference_reason = "after round " + std::to_string(message.rounds) +
                             " the parameters of " + WorkerNames(wrong) +
                             " differed from those of ";
  record.difference_reason +=
      message.majority ? "the other " + WorkerCount(size() - wrong.size()) + ", which it took over"
                       : WorkerName(group_.members()[rank]) +
                             ", which it took over; nobody knows whose were right";
  keeper_.Announce(turn);
}

// What is trained on from here on. Nothing has to be done, but to wait as long for the next one.
void JobController::On(std::uint32_t rank, const SelectedMessage& message, Turn turn) {
  const bool counts = keeper_.tracker() && !keeper_.Secured() && rank == 0;
  if (!counts || message.generation != record().generation) return;
  JobRecord& record = keeper_.record();
  record.selections = message.number;
  record.selection = "after round " + std::to_string(message.rounds) + " and epoch " +
                     std::to_string(message.epoch) + ": " + message.facts;
  if (std::isfinite(message.seconds)) {
    record.selection_seconds = std::max(record.selection_seconds, message.seconds);
  }
  keeper_.Announce(turn);
}

void JobController::LeaveOut(const std::vector<MemberRecord>& members, const std::string& reason,
                             Turn turn) {
  if (!(In<phase::Training>() || In<phase::Regrouping>()) || !Regroups()) return;
  bool any = false;
  for (const MemberRecord& member : members) {
    const std::optional<std::uint32_t> rank = group_.RankOf(member.worker);
    if (!rank || group_.Staying().size() == 1) continue;
    GiveUp(*rank, WorkerName(member) + " " + reason, deadlines_.grace, turn);
    any = true;
  }
  if (any) Regroup(turn);
}

}  // namespace tactus::job
