// Jobs between the domain and the users' API: each message is made in one function here.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/job_deadlines.h"
#include "coordinator/job/records.h"
#include "policies/decision.h"
#include "policies/device_values.h"
#include "policies/plan.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// "projects/default/jobs/ID" of a resource id "shakespeare-3".
std::string JobName(const std::string& id);

// The resource id in a name of that form, or in an id alone. `field` is the request's field, for
// the error. Errors: InvalidArgument, not such a name.
absl::StatusOr<std::string> ParseJobName(const std::string& field, const std::string& name);

// A decision's name in two parts.
struct DecisionName {
  std::string job{};  // the resource id
  policies::DecisionKey key{};
};
// "projects/default/jobs/ID/decisions/12-batch", or with the ID alone before /decisions/. Errors:
// as ParseJobName.
absl::StatusOr<DecisionName> ParseDecisionName(const std::string& field, const std::string& name);
std::string NameOf(const DecisionName& name);

// Changes with every revision that is persisted.
std::string EtagOf(const job::JobRecord& record);

google::protobuf::Timestamp ToTimestamp(job::WallTime time);
// Zero for what a Duration cannot say: NaN, infinities, more than 10,000 years.
google::protobuf::Duration ToProtoDuration(double seconds);
v1::DeviceKind ToProto(job::DeviceKind kind);
v1::Plan ToProto(const policies::Plan& plan);
v1::JobProgress ToProto(const job::Progress& progress,
                        const std::vector<job::MemberRecord>& members);
v1::Job ToProto(const job::JobRecord& record);
v1::JobDeadline ToProto(const job::Rung& rung);
v1::Artifact ToProto(const job::ArtifactRecord& artifact);
v1::Round ToProto(const job::RoundRecord& round);
v1::ValidationPoint ToProto(const job::ValidationRecord& validation);
v1::RoundGroup ToProto(const job::GroupRecord& group);
// `id`: of its job.
v1::Decision ToProto(const std::string& id, const policies::Decision& decision);
// record: of the job whose group it is.
v1::DeviceValues ToProto(const job::JobRecord& record, const policies::DeviceValues& values);

}  // namespace tactus::service
