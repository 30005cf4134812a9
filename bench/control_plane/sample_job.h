// The job that the load generator submits.

#pragma once

#include <cstdint>
#include <string>

#include "tactus/v1/spec.pb.h"

namespace tactus::bench {

// A job of exactly `workers` workers with proportional shares that does not end by itself.
v1::JobSpec SampleSpec(const std::string& name, std::uint32_t workers);

}  // namespace tactus::bench
