#include "agent/collective/nccl_timeouts.h"

#include <array>

namespace tactus::collective {
namespace {

struct Step {
  const char* name = "";
  Duration limit = {};
};

std::string InSeconds(const Step& step) {
  return std::string(step.name) + " (" + std::to_string(ToSeconds(step.limit)) + " s)";
}

}  // namespace

TimeoutLadder TimeoutLadder::Above(Duration in_group) {
  const TimeoutLadder usual;
  const double factor = ToSeconds(in_group) / ToSeconds(usual.in_group);
  const auto scaled = [factor](Duration limit) { return Seconds(ToSeconds(limit) * factor); };
  return {.between_groups = scaled(usual.between_groups),
          .in_group = in_group,
          .init = scaled(usual.init),
          .round = scaled(usual.round),
          .agent_lease = scaled(usual.agent_lease),
          .job = scaled(usual.job)};
}

std::string TimeoutLadder::Validate() const {
  const std::array<Step, 6> steps = {{{"between_groups", between_groups},
                                      {"in_group", in_group},
                                      {"init", init},
                                      {"round", round},
                                      {"agent_lease", agent_lease},
                                      {"job", job}}};
  if (steps.front().limit <= Duration(0)) return InSeconds(steps.front()) + ": must be positive";
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].limit > steps[i - 1].limit) continue;
    return InSeconds(steps[i]) + ": must be longer than " + InSeconds(steps[i - 1]);
  }
  return "";
}

}  // namespace tactus::collective
