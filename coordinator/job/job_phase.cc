#include "coordinator/job/job_phase.h"

namespace tactus::job {
namespace {

std::optional<Instant> Due(const phase::Idle&) { return std::nullopt; }
std::optional<Instant> Due(const auto& phase) { return phase.deadline; }

}  // namespace

std::optional<Instant> DeadlineOf(const Phase& phase) {
  return std::visit([](const auto& present) { return Due(present); }, phase);
}

}  // namespace tactus::job
