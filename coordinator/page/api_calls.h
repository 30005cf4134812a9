// The public API's answers as the page's JSON.

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/page/answers.h"
#include "runtime/http_message.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::page {

// A message as JSON, with the fields' names as in the .proto; a field that is not set is left out,
// and a 64 bit number is a string.
std::string ToJson(const google::protobuf::Message& message);

// The refusal that stands for a failed call.
runtime::HttpResponse FromStatus(const absl::Status& status);

// The value `job` of a query: the id of a job, or its whole name.
// Errors: InvalidArgument, none, or no id.
absl::StatusOr<std::string> JobOf(const runtime::HttpRequest& request);

// Each reads a query and makes the question of it.
// Errors: InvalidArgument, a value out of range, or a name that is not known.
class ApiCalls {
 public:
  using Token = std::shared_ptr<void>;

  // `token` is held by each call that is under way.
  ApiCalls(const std::shared_ptr<grpc::Channel>& channel, std::weak_ptr<void> token);

  absl::StatusOr<Answers::Ask> ListJobs(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> GetJob(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> ListRounds(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> ListValidations(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> ListDecisions(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> ReadLogs(const runtime::HttpRequest& request) const;
  absl::StatusOr<Answers::Ask> ListNodes(const runtime::HttpRequest& request) const;

  v1::Jobs::Stub& jobs() const { return *jobs_; }

 private:
  const std::shared_ptr<v1::Jobs::Stub> jobs_;    // shared with questions that wait
  const std::shared_ptr<v1::Nodes::Stub> nodes_;  // likewise
  const std::weak_ptr<void> token_;
};

}  // namespace tactus::page
