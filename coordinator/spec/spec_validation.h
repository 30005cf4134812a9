// A job's specification, checked field by field against the rules of proto/tactus/v1/spec.proto.

#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/resolve.h"
#include "runtime/status.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// Every rule that `spec` breaks, in the order of the fields; each names the field by its path in
// the job file ("optimizer.sgd.momentum"), what was found and what is allowed. Empty: the spec is
// right. What only a worker can see (does the file exist, does the model load) is not looked at.
std::vector<runtime::FieldViolation> SpecViolations(const v1::JobSpec& spec);

// Refuses paths that are not absolute, which nodes would read each in a folder of its own: of a
// specification that a client hands on, where a job file's are as the client has completed them.
void CheckNodesPaths(const v1::JobSpec& spec, FieldChecks& checks);

// What the controller needs of a specification.
job::JobSettings SettingsOf(const ResolvedSpec& spec);

// The same of one that may be wrong.
// Errors: InvalidArgument with every violation as detail.
absl::StatusOr<job::JobSettings> ParseSpec(const v1::JobSpec& spec);

}  // namespace tactus::spec
