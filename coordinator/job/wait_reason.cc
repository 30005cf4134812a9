#include "coordinator/job/wait_reason.h"

#include <cstddef>

#include "coordinator/job/schedule.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

std::string WaitReason(const JobSettings& settings, const Membership& membership) {
  std::size_t free = 0;
  for (const FreeDevice& device : membership.Free()) {
    if (Accepts(settings, device.kind, *device.traits, membership.Standard())) ++free;
  }
  std::size_t known = 0, cordoned = 0, leaving = 0, at_fault = 0;
  for (const auto& [name, node] : membership.nodes()) {
    for (const DeviceRecord& device : node.devices) {
      if (!Accepts(settings, device.kind, node.traits, membership.Standard())) continue;
      ++known;
      if (node.cordoned) {
        ++cordoned;
      } else if (!node.leaving.empty()) {
        ++leaving;
      } else if (!device.fault.empty()) {
        ++at_fault;
      }
    }
  }
  std::string reason = "needs " + DeviceCount(settings.workers_min, settings.device) + "; " +
                       std::to_string(free) + " free";
  if (cordoned > 0) reason += ", " + std::to_string(cordoned) + " on cordoned nodes";
  if (leaving > 0) reason += ", " + std::to_string(leaving) + " on nodes that end";
  if (at_fault > 0) reason += ", " + std::to_string(at_fault) + " at fault";
  if (known < settings.workers_min) {
    const bool picky = !settings.selector.empty() || !settings.tolerations.empty();
    reason += ", " + std::to_string(known) + (picky ? " known that fit its selector" : " known");
    if (settings.program) reason += "; programs run where tactus-agent has --allow-programs";
  }
  return reason;
}

}  // namespace tactus::job
