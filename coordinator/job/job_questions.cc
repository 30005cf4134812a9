// What a JobController is asked, which changes nothing.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/job/job_controller.h"

namespace tactus::job {

bool JobController::HasMember(WorkerId worker) const {
  const std::optional<std::uint32_t> rank = group_.RankOf(worker);
  return rank && group_.Live(*rank);
}

bool JobController::HasLive(WorkerId worker) const {
  return HasMember(worker) || group_.IsFormer(worker);
}

bool JobController::Done() const { return IsFinal(state()) && group_.AllGone(); }

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

std::optional<policies::MeasuredGroup> JobController::Measured() const {
  return state() == JobState::kRunning ? keeper_.Measured() : std::nullopt;
}

}  // namespace tactus::job
