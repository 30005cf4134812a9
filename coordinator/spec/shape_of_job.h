// Which jobs may train in one process, their passes computed together.

#pragma once

#include <string>

#include "coordinator/spec/resolve.h"

namespace tactus::spec {

// Why the job trains by itself wherever it is: "field: found ..., allowed is ...", or what it is.
// Empty: it may share a process with jobs of its shape.
std::string WhyByItself(const ResolvedSpec& spec);

// Equal for jobs that differ in numbers alone: model, data and samples of a step are the same, all
// else, optimizer, seed and end, is each job's own. 32 hexadecimal digits; empty where WhyByItself
// is not.
std::string ShapeOfJob(const ResolvedSpec& spec);

}  // namespace tactus::spec
