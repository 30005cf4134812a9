// All that a coordinator says of one job or node, in sections. Pure but for the local time zone.

#pragma once

#include <string>

#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

// Ends with the job file, as YAML.
std::string Describe(const v1::Job& job, bool colour);
std::string Describe(const v1::Node& node, bool colour);

// A table of how long the job waits for what.
std::string DescribeDeadlines(const v1::Job& job);

}  // namespace tactus::client
