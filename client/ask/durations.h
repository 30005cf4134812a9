// Durations of a message as the seconds that models count in.

#pragma once

#include <google/protobuf/util/time_util.h>

#include <cmath>

namespace tactus::client {

// Rounded once: 30s is 30.
inline double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(google::protobuf::util::TimeUtil::DurationToNanoseconds(duration)) /
         1e9;
}

// To a nanosecond. Requires: |seconds| < 9e9.
inline google::protobuf::Duration DurationOf(double seconds) {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(std::llround(seconds * 1e9));
}

}  // namespace tactus::client
