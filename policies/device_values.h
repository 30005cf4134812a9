// What each device of a group is worth to it, and what one more would be.

#pragma once

#include <cstdint>
#include <vector>

#include "policies/plan.h"
#include "policies/planner_options.h"
#include "policies/useful_samples.h"

namespace tactus::policies {

// A group as it was measured.
struct MeasuredGroup {
  Plan plan{};                   // in force
  std::vector<double> speeds{};  // [samples/s] by rank, each > 0
  double transfer_seconds = 0;   // D, of a round
  BatchWorth worth{};
  BatchOptions batch{};
};

// A device and what the group's forecast gains by it.
struct DeviceValue {
  std::uint32_t rank = 0;  // of the device, or of that which one more would be like
  double speed = 0;        // [samples/s]
  double adds = 0;         // [useful samples/s]; below 0: it costs more than it brings
};

struct DeviceValues {
  double useful = 0;  // [useful samples/s] of the group as it is
  double transfer_seconds = 0;
  std::vector<DeviceValue> devices{};  // by rank
  // One more like the fastest, the median and the slowest of the group. Empty for a group of one:
  // nothing was exchanged yet that would tell what an exchange takes.
  std::vector<DeviceValue> more{};
  double transfer_seconds_less = 0;  // of a group with one member less
  double transfer_seconds_more = 0;  // and with one more; 0 where `more` is empty
};

// What the group's forecast loses without the member i, and gains by a member of speed v:
//
//   adds_i = R(group) - R(group without i)       more_v = R(group with v) - R(group)
//
//   R(group as it is) = UsefulRate of Forecast(plan, speeds, D)
//   R(other group)    = the same with ProportionalShares of the same total and D of its size
//
//   D(m) = D (m - 1) / m over (n - 1) / n,   D(1) = 0
//
// n, m  members;  D  [s]  measured transfer of a round
//
// Where several members make one replica, n and m are replicas, and a member adds what its replica
// does, which goes with it; one more is a replica of members like it.
//
// So a group of unequal members with equal batches is told what its slowest costs it as it is. The
// transfer is taken to grow with the bytes that a member sends and receives in an all-reduce, 2 (m
// - 1) / m of the parameters by ring and by mesh alike, over links like those that there are.
// Latencies, of which a mesh has two whatever m and a ring 2 (m - 1), are not known apart.
//
// REQUIRES: one size and one speed > 0 a member, at least one member, whole replicas.
//
// Source: design.
DeviceValues ValueDevices(const MeasuredGroup& group);

}  // namespace tactus::policies
