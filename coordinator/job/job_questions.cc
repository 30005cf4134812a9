// What a JobController is asked, which changes nothing.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/job_controller.h"

namespace tactus::job {

bool JobController::HasMember(WorkerId worker) const {
  const std::optional<std::uint32_t> rank = group_.RankOf(worker);
  return rank ? group_.Live(*rank) : joiners_.Has(worker);
}

bool JobController::HasLive(WorkerId worker) const {
  return HasMember(worker) || group_.IsFormer(worker);
}

bool JobController::Done() const { return IsFinal(state()) && group_.AllGone(); }

bool JobController::Loads() const {
  const auto* const starting = std::get_if<phase::Starting>(&phase_);
  return starting != nullptr && starting->formation.phase() == GroupFormation::Phase::kLoading;
}

std::string JobController::WhyNotReverted(const policies::Decision& decision) const {
  if (state() != JobState::kRunning || !keeper_.tracker()) return "the job does not train";
  return keeper_.WhyNotReverted(decision);
}

std::optional<Instant> JobController::SteadyFrom() const {
  const auto* const training = std::get_if<phase::Training>(&phase_);
  if (training == nullptr) return std::nullopt;
  constexpr std::uint32_t kDoublingsMax = 5;
  return training->since + deadlines_.resize * (1 << std::min(record().regroups, kDoublingsMax));
}

std::optional<Instant> JobController::GrowsFrom() const {
  const auto* const training = std::get_if<phase::Training>(&phase_);
  if (training == nullptr || !Movable() || !GrowsInPlace()) return std::nullopt;
  if (!joiners_.coming().empty() || !leaving_.empty()) return std::nullopt;
  constexpr std::uint32_t kDoublingsMax = 7;
  const std::uint32_t doublings = std::min(record().regroups + joins_failed_, kDoublingsMax);
  return training->since + deadlines_.join * (1 << doublings);
}

std::vector<MemberRecord> JobController::Keeps() const {
  std::vector<MemberRecord> members = record().members;
  std::erase_if(members,
                [this](const MemberRecord& member) { return leaving_.contains(member.worker); });
  const std::vector<MemberRecord> joiners = joiners_.members();
  members.insert(members.end(), joiners.begin(), joiners.end());
  return members;
}

std::vector<MemberRecord> JobController::GivesBack() const {
  std::vector<MemberRecord> members = group_.formers();
  for (const MemberRecord& member : record().members) {
    if (leaving_.contains(member.worker)) members.push_back(member);
  }
  return members;
}

std::optional<policies::MeasuredGroup> JobController::Measured() const {
  return state() == JobState::kRunning ? keeper_.Measured() : std::nullopt;
}

}  // namespace tactus::job
