// The jobs of a sweep beside each other, the best first. Pure.

#pragma once

#include <optional>
#include <string>

#include "client/render/tables.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// The label that all jobs of a sweep have, with its name; and what stands before the path of a
// field in the key of the label that has the value which the job has for it.
inline constexpr const char* kSweepLabel = "sweep";
inline constexpr const char* kSweptPrefix = "over/";

// The least validation loss of a job so far; without validations its loss in training; nothing:
// it has none that is finite.
std::optional<double> LossToCompare(const v1::Job& job);

// Those with the least loss to compare come first; those without one last, in the order in which
// they were made. A loss of validation and one of training are compared as if they were the same.
void SortByLoss(v1::ListJobsResponse* jobs);

// A line for each, with a column for each field that has different values; formats other than
// tables are those of the jobs.
std::string RenderSweep(const v1::ListJobsResponse& jobs, Look look);

}  // namespace tactus::client
