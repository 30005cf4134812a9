// What an UpdateJob call makes of a job's specification.

#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"
#include "coordinator/spec/field_checks.h"
#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

using Labels = std::map<std::string, std::string>;

// A job as an update leaves it.
struct UpdatedSpec {
  v1::JobSpec spec{};
  Labels labels{};
  job::JobSettings settings{};
  bool changed = false;  // anything at all
  // Something that workers read only when they start, or the bounds of the group.
  bool needs_restart = false;
};

// `spec` and `labels` with the fields of the request's mask taken from the request, checked as a
// whole. A field of the mask that the request leaves out is reset to its default.
//
// Errors: InvalidArgument with the violations: a path of the mask that may not change (or an
// optimizer that the job has not), or what is wrong with the specification that comes out.
absl::StatusOr<UpdatedSpec> ApplyUpdate(const v1::JobSpec& spec, const Labels& labels,
                                        const v1::UpdateJobRequest& request);

// At most 64, with keys of 1 to 253 and values of 0 to 253 printable bytes.
void CheckLabels(const Labels& labels, FieldChecks& checks);

}  // namespace tactus::spec
