// Answers of the coordinator in the formats of `-o`. Pure but for the local time zone.

#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <string>

#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

enum class OutputFormat { kTable, kJson, kYaml, kName };

// One of "table", "json", "yaml", "name". Requires: it is one of them.
OutputFormat ParseOutputFormat(const std::string& text);

std::string Render(const v1::ListJobsResponse& jobs, OutputFormat format);
std::string Render(const v1::ListNodesResponse& nodes, OutputFormat format);
std::string Render(const v1::ListRoundsResponse& rounds, OutputFormat format);
std::string Render(const v1::ListDecisionsResponse& decisions, OutputFormat format);
std::string Render(const v1::Job& job, OutputFormat format);

// "learning rate".
std::string AxisName(v1::Axis axis);

// "+12.5 %" of 0.125; "-" for a value that is not finite.
std::string FormatGain(double gain);

// "2026-03-01 14:05:00" in the local time zone; "-" for no time.
std::string FormatLocalTime(const google::protobuf::Timestamp& time);

}  // namespace tactus::client
