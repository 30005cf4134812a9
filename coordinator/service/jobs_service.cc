#include "coordinator/service/jobs_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coordinator/service/calls.h"
#include "coordinator/service/download_call.h"
#include "coordinator/service/job_conversion.h"
#include "coordinator/service/watch_call.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/spec_validation.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr int kLabelsMax = 64;
constexpr std::size_t kLabelBytesMax = 253;
constexpr std::size_t kRequestIdBytesMax = 64;

void CheckLabels(const v1::CreateJobRequest& request, spec::FieldChecks& checks) {
  if (request.labels_size() > kLabelsMax) {
    checks.Add("labels", "found " + std::to_string(request.labels_size()) + ", allowed are " +
                             std::to_string(kLabelsMax));
  }
  for (const auto& [key, value] : request.labels()) {
    if (!key.empty() && key.size() <= kLabelBytesMax && value.size() <= kLabelBytesMax) continue;
    checks.Add("labels." + key.substr(0, kLabelBytesMax),
               "allowed are keys of 1 to 253 bytes and values of at most 253");
  }
}

void CheckRequestId(const std::string& id, spec::FieldChecks& checks) {
  const bool right = id.size() <= kRequestIdBytesMax && std::ranges::all_of(id, [](const char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '-';
                     });
  if (!right) checks.Add("request_id", "allowed is a UUID: at most 64 letters, digits and dashes");
}

// The only way from the request to the domain.
absl::StatusOr<NewJob> FromProto(const v1::CreateJobRequest& request) {
  std::vector<runtime::FieldViolation> violations = spec::SpecViolations(request.spec());
  spec::FieldChecks checks;
  CheckLabels(request, checks);
  CheckRequestId(request.request_id(), checks);
  violations.insert(violations.end(), checks.violations().begin(), checks.violations().end());
  if (!violations.empty()) return runtime::InvalidFields(violations);
  absl::StatusOr<job::JobSettings> settings = spec::ParseSpec(request.spec());
  if (!settings.ok()) return settings.status();
  return NewJob{.settings = *std::move(settings),
                .spec = request.spec().SerializeAsString(),
                .labels = {request.labels().begin(), request.labels().end()},
                .request_id = request.request_id()};
}

// Answers a call with the job, or with what went wrong.
Answer<job::JobRecord> WithJob(const UnaryCall& call, v1::Job* response) {
  return [call, response](const absl::StatusOr<job::JobRecord>& record) {
    if (record.ok()) *response = ToProto(*record);
    call.Finish(record.status());
  };
}

}  // namespace

grpc::ServerUnaryReactor* JobsService::CreateJob(grpc::CallbackServerContext* context,
                                                 const v1::CreateJobRequest* request,
                                                 v1::Job* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/CreateJob");
  if (!call.Admit()) return call.reactor();
  absl::StatusOr<NewJob> job = FromProto(*request);
  if (!job.ok()) {
    call.Finish(job.status());
  } else if (request->validate_only()) {
    *response->mutable_spec() = request->spec();
    *response->mutable_labels() = request->labels();
    call.Finish(absl::OkStatus());
  } else {
    around_.core.CreateJob(*std::move(job), WithJob(call, response));
  }
  return call.reactor();
}

grpc::ServerUnaryReactor* JobsService::GetJob(grpc::CallbackServerContext* context,
                                              const v1::GetJobRequest* request, v1::Job* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/GetJob");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<std::string> id = ParseJobName("name", request->name());
  if (id.ok()) {
    around_.core.FindJob(*id, WithJob(call, response));
  } else {
    call.Finish(id.status());
  }
  return call.reactor();
}

grpc::ServerUnaryReactor* JobsService::ListJobs(grpc::CallbackServerContext* context,
                                                const v1::ListJobsRequest* request,
                                                v1::ListJobsResponse* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/ListJobs");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<int> size = PageSize(request->page_size(), {});
  if (!size.ok()) {
    call.Finish(size.status());
    return call.reactor();
  }
  around_.core.ListJobs(*size, request->page_token(),
                        [call, response](const absl::StatusOr<store::Page<job::JobRecord>>& page) {
                          if (!page.ok()) return call.Finish(page.status());
                          for (const job::JobRecord& record : page->items) {
                            *response->add_jobs() = ToProto(record);
                          }
                          response->set_next_page_token(page->next);
                          call.Finish(absl::OkStatus());
                        });
  return call.reactor();
}

grpc::ServerUnaryReactor* JobsService::CancelJob(grpc::CallbackServerContext* context,
                                                 const v1::CancelJobRequest* request,
                                                 v1::Job* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/CancelJob");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<std::string> id = ParseJobName("name", request->name());
  if (id.ok()) {
    around_.core.CancelJob(*id, request->discard(), WithJob(call, response));
  } else {
    call.Finish(id.status());
  }
  return call.reactor();
}

grpc::ServerUnaryReactor* JobsService::ListRounds(grpc::CallbackServerContext* context,
                                                  const v1::ListRoundsRequest* request,
                                                  v1::ListRoundsResponse* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/ListRounds");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<std::string> id = ParseJobName("name", request->name());
  const absl::StatusOr<int> size = PageSize(request->page_size(), {.standard = 1000, .max = 10000});
  if (!id.ok() || !size.ok()) {
    call.Finish(id.ok() ? size.status() : id.status());
    return call.reactor();
  }
  around_.core.ListRounds(
      *id, *size, request->page_token(),
      [call, response](const absl::StatusOr<store::Page<job::RoundRecord>>& page) {
        if (!page.ok()) return call.Finish(page.status());
        for (const job::RoundRecord& round : page->items) *response->add_rounds() = ToProto(round);
        response->set_next_page_token(page->next);
        call.Finish(absl::OkStatus());
      });
  return call.reactor();
}

grpc::ServerUnaryReactor* JobsService::ListDecisions(grpc::CallbackServerContext* context,
                                                     const v1::ListDecisionsRequest* request,
                                                     v1::ListDecisionsResponse* response) {
  const UnaryCall call(context, around_.metrics, "Jobs/ListDecisions");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<std::string> id = ParseJobName("name", request->name());
  const absl::StatusOr<int> size = PageSize(request->page_size(), {.standard = 1000, .max = 10000});
  if (!id.ok() || !size.ok()) {
    call.Finish(id.ok() ? size.status() : id.status());
    return call.reactor();
  }
  around_.core.ListDecisions(
      *id, *size, request->page_token(),
      [call, response, id = *id](const absl::StatusOr<store::Page<job::DecisionRecord>>& page) {
        if (!page.ok()) return call.Finish(page.status());
        for (const job::DecisionRecord& record : page->items) {
          *response->add_decisions() = ToProto(id, record.decision);
        }
        response->set_next_page_token(page->next);
        call.Finish(absl::OkStatus());
      });
  return call.reactor();
}

grpc::ServerWriteReactor<v1::JobEvent>* JobsService::WatchJob(grpc::CallbackServerContext*,
                                                              const v1::WatchJobRequest* request) {
  return StartWatch(around_.core, around_.metrics, ParseJobName("name", request->name()));
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* JobsService::DownloadArtifact(
    grpc::CallbackServerContext*, const v1::DownloadArtifactRequest* request) {
  return StartDownload({.core = around_.core,
                        .files = around_.files,
                        .metrics = around_.metrics,
                        .state_folder = around_.state_folder},
                       *request);
}

}  // namespace tactus::service
