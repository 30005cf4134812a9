// Answers of the coordinator in the formats of `-o`. Pure but for the local time zone.

#pragma once

#include <google/protobuf/map.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

enum class OutputFormat { kTable, kWide, kJson, kYaml, kName };

// One of "table", "wide", "json", "yaml", "name". Requires: it is one of them.
OutputFormat ParseOutputFormat(const std::string& text);

// How an answer is shown.
struct Look {
  // A format alone is a look.
  Look(OutputFormat of_format, bool in_colour = false,  // NOLINT(google-explicit-constructor)
       std::size_t in_columns = 0)
      : format(of_format), colour(in_colour), columns(in_columns) {}
  OutputFormat format = OutputFormat::kTable;
  bool colour = false;  // states, in the tables
  // kTable leaves out what matters least until a line has no more characters; 0: nothing.
  std::size_t columns = 0;
};

std::string Render(const v1::ListJobsResponse& jobs, Look look);
std::string Render(const v1::ListNodesResponse& nodes, Look look);
std::string Render(const v1::ListRoundsResponse& rounds, Look look);
std::string Render(const v1::ListValidationsResponse& validations, Look look);
std::string Render(const v1::ListDecisionsResponse& decisions, Look look);
// The members of the group, then what one more would add.
std::string Render(const v1::DeviceValues& values, Look look);
std::string Render(const v1::Job& job, Look look);
std::string Render(const v1::Node& node, Look look);

// The jobs that hold it, "lr-1,lr-2"; "-": none does.
std::string JobsText(const v1::Device& device);

// "ready", "leaving", "cordoned", "draining", "drained" (no device has a job any more) or "gone".
std::string NodeStatus(const v1::Node& node);

// The escape code of the word for a job's or a node's state; empty: no colour.
std::string StateCode(const std::string& state);

// "2 to 8", "2 or more".
std::string WorkersText(const v1::Workers& workers);

// "team=vision,zone=a"; "-" for none.
std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels);

// What did not go as it was meant to, and is made good or left out.
struct Shortfall {
  std::string name;  // "skipped"
  std::string text;  // "3 updates, as numbers were not finite"
};
std::vector<Shortfall> Shortfalls(const v1::JobProgress& progress);

// "1.79, accuracy 61.0 % (10,000 samples)".
std::string ValidationText(const v1::ValidationPoint& validation);

// "learning_rate", as options have it.
std::string AxisField(v1::Axis axis);

// "learning rate".
std::string AxisName(v1::Axis axis);

// "+12.5 %" of 0.125; "-" for a value that is not finite.
std::string FormatGain(double gain);

// "2026-03-01 14:05:00" in the local time zone; "-" for no time.
std::string FormatLocalTime(const google::protobuf::Timestamp& time);

}  // namespace tactus::client
