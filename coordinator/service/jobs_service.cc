#include "coordinator/service/jobs_service.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/result_collector.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/download_call.h"
#include "coordinator/service/get_job_call.h"
#include "coordinator/service/logs_call.h"
#include "coordinator/service/watch_call.h"
#include "coordinator/shell/job_conversion.h"
#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/spec_update.h"
#include "coordinator/spec/spec_validation.h"
#include "runtime/job_files.h"
#include "runtime/status.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::service {
namespace {

constexpr std::size_t kRequestIdBytesMax = 64;
constexpr std::int64_t kGraceSecondsMax = 24 * 3600;
constexpr int kOnePageMax = 10000;

void CheckRequestId(const std::string& id, spec::FieldChecks& checks) {
  const bool right = id.size() <= kRequestIdBytesMax && std::ranges::all_of(id, [](const char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '-';
                     });
  if (right) return;
  checks.Add("request_id",
             "found " + spec::Shown(id) +
                 ", allowed are at most 64 letters, digits and dashes, such as a UUID");
}

// The id of the job that a request names.
absl::StatusOr<std::string> JobOf(const auto& request) {
  return ParseJobName("name", request.name());
}

// FromProto is what a request says, in words of the core.
absl::StatusOr<NewJob> FromProto(const v1::CreateJobRequest& request) {
  std::vector<runtime::FieldViolation> violations = spec::SpecViolations(request.spec());
  spec::FieldChecks checks;
  const spec::Labels labels(request.labels().begin(), request.labels().end());
  spec::CheckLabels(labels, checks);
  CheckRequestId(request.request_id(), checks);
  if (violations.empty()) spec::CheckNodesPaths(request.spec(), checks);
  violations.insert(violations.end(), checks.violations().begin(), checks.violations().end());
  if (!violations.empty()) return runtime::InvalidFields(violations);
  absl::StatusOr<job::JobSettings> settings = spec::ParseSpec(request.spec());
  if (!settings.ok()) return settings.status();
  NewJob job = {.settings = *std::move(settings),
                .spec = request.spec().SerializeAsString(),
                .labels = labels,
                .request_id = request.request_id()};
  if (request.from().empty()) return job;
  absl::StatusOr<std::string> from = ParseJobName("from", request.from());
  if (!from.ok()) return from.status();
  job.from = *std::move(from);
  return job;
}

struct Cancel {
  std::string id = {};
  job::JobCancelled event = {};
};

absl::StatusOr<Cancel> FromProto(const v1::CancelJobRequest& request) {
  const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
  if (!id.ok()) return id.status();
  Cancel cancel = {.id = *id,
                   .event = {.reason = "cancelled by the user", .discard = request.discard()}};
  if (!request.has_grace()) return cancel;
  const google::protobuf::Duration& grace = request.grace();
  const bool whole = grace.seconds() >= 0 && grace.seconds() <= kGraceSecondsMax;
  const bool part = grace.nanos() >= 0 && grace.nanos() < 1'000'000'000 &&
                    (grace.nanos() == 0 || grace.seconds() < kGraceSecondsMax);
  if (whole && part) {
    cancel.event.grace = std::chrono::seconds(grace.seconds()) + Duration(grace.nanos());
    return cancel;
  }
  return runtime::InvalidFields(
      {{.field = "grace",
        .description = "found " + std::to_string(grace.seconds()) + "s, allowed is 0 to 24h"}});
}

// Of a field that asks for one page of so many at most, instead of all in pages.
absl::Status CheckOnePage(const char* field, int found, const char* things) {
  if (found >= 0 && found <= kOnePageMax) return absl::OkStatus();
  return runtime::InvalidFields(
      {{.field = field,
        .description = "found " + std::to_string(found) + ", allowed is 0, for all " + things +
                       " in pages, or 1 to " + std::to_string(kOnePageMax)}});
}

absl::StatusOr<RoundQuery> FromProto(const v1::ListRoundsRequest& request) {
  const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
  if (!id.ok()) return id.status();
  const absl::StatusOr<int> size = PageSize(request.page_size(), {.standard = 1000, .max = 10000});
  if (!size.ok()) return size.status();
  const absl::Status points = CheckOnePage("points_max", request.points_max(), "rounds");
  if (!points.ok()) return points;
  return RoundQuery{.id = *id,
                    .page_size = *size,
                    .page_token = request.page_token(),
                    .points_max = request.points_max(),
                    .first_round = request.first_round()};
}

absl::StatusOr<DecisionQuery> FromProto(const v1::ListDecisionsRequest& request) {
  const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
  if (!id.ok()) return id.status();
  const absl::StatusOr<int> size = PageSize(request.page_size(), {.standard = 1000, .max = 10000});
  if (!size.ok()) return size.status();
  const absl::Status newest = CheckOnePage("newest", request.newest(), "decisions");
  if (!newest.ok()) return newest;
  return DecisionQuery{.id = *id,
                       .page_size = *size,
                       .page_token = request.page_token(),
                       .newest = request.newest()};
}

absl::StatusOr<CoreRunner::RevertQuery> FromProto(const v1::RevertDecisionRequest& request) {
  absl::StatusOr<DecisionName> name = ParseDecisionName("name", request.name());
  if (!name.ok()) return name.status();
  spec::FieldChecks checks;
  CheckRequestId(request.request_id(), checks);
  if (!checks.violations().empty()) return runtime::InvalidFields(checks.violations());
  return CoreRunner::RevertQuery{.decision = *std::move(name),
                                 .request_id = request.request_id(),
                                 .validate_only = request.validate_only()};
}

absl::StatusOr<store::JobQuery> FromProto(const v1::ListJobsRequest& request) {
  const absl::StatusOr<int> size = PageSize(request.page_size(), {});
  if (!size.ok()) return size.status();
  return store::JobQuery{.page_size = *size,
                         .page_token = request.page_token(),
                         .filter = request.filter(),
                         .order_by = request.order_by()};
}

// Answers a call with the job, or with what went wrong.
Answer<job::JobRecord> WithJob(const UnaryCall& call, v1::Job* response) {
  return [call, response](const absl::StatusOr<job::JobRecord>& record) {
    if (record.ok()) *response = ToProto(*record);
    if (record.ok()) call.visit().About(JobName(record->name));
    call.Finish(record.status());
  };
}

// Goes on if whoever calls may change the job: see access::ChangeOfJob. Whose it is never changes,
// and its name is given once, so that asking before the change is asking at it.
void ForOwnJob(const FileSurroundings& around, const UnaryCall& call, const std::string& id,
               std::function<void()> go_on) {
  call.visit().About(JobName(id));
  const access::Principal& who = call.visit().who();
  if (who.kind == access::Principal::Kind::kLocal || who.role == v1::ROLE_ADMIN) return go_on();
  around.core.FindJob(id, [call, id,
                           go_on = std::move(go_on)](const absl::StatusOr<job::JobRecord>& record) {
    absl::Status status = record.status();
    if (status.ok()) {
      status = call.visit().Allow(access::ChangeOfJob{.job = JobName(id), .owner = record->owner});
    }
    status.ok() ? go_on() : call.Finish(status);
  });
}

// An uploaded file, and the field that names it.
struct NamedBlob {
  std::string field = {};
  std::string sha256 = {};
};

// Those that a specification names.
std::vector<NamedBlob> BlobsOf(const v1::JobSpec& spec) {
  std::vector<NamedBlob> blobs;
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    if (!spec::NamesBlob(file)) continue;
    blobs.push_back({.field = field, .sha256 = file.substr(runtime::kUploaded.size())});
  }
  return blobs;
}

// Waits until all are where they are kept: a job that is acknowledged has its files wherever
// another coordinator goes on with it. On the files' thread.
void KeepAll(BlobStore& blobs, std::vector<std::string> hashes, BlobStore::Kept then) {
  if (hashes.empty()) return then(absl::OkStatus());
  const std::string last = std::move(hashes.back());
  hashes.pop_back();
  blobs.Keep(last, [&blobs, hashes = std::move(hashes),
                    then = std::move(then)](const absl::Status& status) {
    if (!status.ok()) return then(status);
    KeepAll(blobs, hashes, then);
  });
}

// Makes the job if its files are there, and the disk has room for what it will bring; looking for
// them also keeps them for a while.
void CreateWithFiles(const FileSurroundings& around, NewJob job,
                     const std::vector<NamedBlob>& blobs, Answer<job::JobRecord> answer) {
  around.files.Post([around, job = std::move(job), blobs, answer = std::move(answer)]() mutable {
    const absl::Status room = around.floor.Admit("job", 0);
    if (!room.ok()) return answer(room);
    std::vector<std::string> on_their_way;
    for (const auto& [field, sha256] : blobs) {
      const absl::StatusOr<BlobStore::State> state = around.blobs.Find(sha256);
      if (!state.ok()) return answer(state.status());
      if (state->on_its_way) on_their_way.push_back(sha256);
      if (state->complete) continue;
      return answer(runtime::WithReason(
          absl::NotFoundError(field + ": sha256:" + sha256 +
                              " is not at the coordinator; upload it first"),
          {.reason = "BLOB_NOT_FOUND", .metadata = {{"sha256", sha256}, {"field", field}}}));
    }
    KeepAll(around.blobs, std::move(on_their_way),
            [around, job = std::move(job), answer = std::move(answer)](const absl::Status& kept) {
              kept.ok() ? around.core.CreateJob(job, answer) : answer(kept);
            });
  });
}

// The same, after the job from which it begins was asked what it has. `make` is given the new job
// and the hashes of its files.
using Make = std::function<void(NewJob job, std::vector<NamedBlob> blobs)>;
void FindStart(const FileSurroundings& around, NewJob job, std::vector<NamedBlob> blobs,
               const Answer<job::JobRecord>& answer, Make make) {
  if (job.from.empty()) return make(std::move(job), std::move(blobs));
  const std::string from = job.from;
  around.core.FindJob(
      from, [from, job = std::move(job), blobs = std::move(blobs), answer,
             make = std::move(make)](const absl::StatusOr<job::JobRecord>& found) mutable {
        if (!found.ok()) return answer(found.status());
        std::optional<job::CheckpointRecord> start = job::StartFrom(*found);
        if (!start) {
          return answer(runtime::WithReason(
              absl::FailedPreconditionError("from: " + JobName(from) +
                                            " has no checkpoint and no result to begin from"),
              {.reason = "NOTHING_TO_START_FROM", .metadata = {{"job", from}}}));
        }
        blobs.push_back({.field = "from", .sha256 = start->sha256});
        job.start = *std::move(start);
        make(std::move(job), std::move(blobs));
      });
}

// Refuses the job that a request id made where another specification came with it, or another
// user: the caller would take that job for its own.
struct Request {
  v1::JobSpec spec{};
  std::string owner{};
};
Answer<job::JobRecord> OfThisRequest(const Request& request, Answer<job::JobRecord> answer) {
  return [request, answer = std::move(answer)](const absl::StatusOr<job::JobRecord>& made) {
    v1::JobSpec of_made;
    const bool same =
        !made.ok() || (made->owner == request.owner && of_made.ParseFromString(made->spec) &&
                       google::protobuf::util::MessageDifferencer::Equals(of_made, request.spec));
    if (same) return answer(made);
    answer(runtime::WithReason(
        absl::FailedPreconditionError(
            "request_id: " + made->request_id + " has made " + JobName(made->name) +
            ", of another specification or another user; allowed is a new one"),
        {.reason = "REQUEST_ID_USED", .metadata = {{"job", made->name}}}));
  };
}

class JobsService final : public v1::Jobs::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

 public:
  explicit JobsService(const FileSurroundings& surroundings) : around_(surroundings) {}

  Reactor* CreateJob(Context* context, const v1::CreateJobRequest* request,
                     v1::Job* response) override {
    const UnaryCall call(context, around_.door, "Jobs/CreateJob");
    return call.AskWith(FromProto(*request), [&](NewJob job) {
      job.owner = access::OwnerOf(call.visit().who());
      const Answer<job::JobRecord> answer =
          OfThisRequest({.spec = request->spec(), .owner = job.owner}, WithJob(call, response));
      FindStart(around_, std::move(job), BlobsOf(request->spec()), answer,
                [around = around_, call, request, response, answer](
                    NewJob found, const std::vector<NamedBlob>& blobs) {
                  if (!request->validate_only()) {
                    return CreateWithFiles(around, std::move(found), blobs, answer);
                  }
                  *response->mutable_spec() = request->spec();
                  *response->mutable_labels() = request->labels();
                  call.Finish(absl::OkStatus());
                });
    });
  }

  Reactor* GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) override {
    return StartGetJob(context, around_.core, around_.door, *request, response);
  }

  Reactor* ListJobs(Context* context, const v1::ListJobsRequest* request,
                    v1::ListJobsResponse* response) override {
    const UnaryCall call(context, around_.door, "Jobs/ListJobs");
    return call.AskWith(FromProto(*request), [&](const store::JobQuery& query) {
      around_.core.ListJobs(
          query, [call, response](const absl::StatusOr<store::Page<job::JobRecord>>& page) {
            if (!page.ok()) return call.Finish(page.status());
            for (const job::JobRecord& record : page->items) {
              *response->add_jobs() = ToProto(record);
            }
            response->set_next_page_token(page->next);
            call.Finish(absl::OkStatus());
          });
    });
  }

  Reactor* UpdateJob(Context* context, const v1::UpdateJobRequest* request,
                     v1::Job* response) override {
    const UnaryCall call(context, around_.door, "Jobs/UpdateJob");
    return call.AskWith(JobOf(*request), [&](const std::string& id) {
      ForOwnJob(around_, call, id, [core = &around_.core, call, id, request, response] {
        core->UpdateJob(id, *request, WithJob(call, response));
      });
    });
  }

  Reactor* CancelJob(Context* context, const v1::CancelJobRequest* request,
                     v1::Job* response) override {
    const UnaryCall call(context, around_.door, "Jobs/CancelJob");
    return call.AskWith(FromProto(*request), [&](const Cancel& cancel) {
      ForOwnJob(around_, call, cancel.id, [core = &around_.core, call, cancel, response] {
        core->CancelJob(cancel.id, cancel.event, WithJob(call, response));
      });
    });
  }

  Reactor* PauseJob(Context* context, const v1::PauseJobRequest* request,
                    v1::Job* response) override {
    const UnaryCall call(context, around_.door, "Jobs/PauseJob");
    return Change<job::JobPaused>(call, *request, response);
  }

  Reactor* ResumeJob(Context* context, const v1::ResumeJobRequest* request,
                     v1::Job* response) override {
    const UnaryCall call(context, around_.door, "Jobs/ResumeJob");
    return Change<job::JobResumed>(call, *request, response);
  }

  Reactor* DeleteJob(Context* context, const v1::DeleteJobRequest* request,
                     google::protobuf::Empty*) override {
    const UnaryCall call(context, around_.door, "Jobs/DeleteJob");
    return call.AskWith(JobOf(*request), [&](const std::string& id) {
      ForOwnJob(around_, call, id, [core = &around_.core, call, id] {
        core->DeleteJob(id, [call](const absl::StatusOr<job::JobRecord>& record) {
          call.Finish(record.status());
        });
      });
    });
  }

  Reactor* ListRounds(Context* context, const v1::ListRoundsRequest* request,
                      v1::ListRoundsResponse* response) override {
    const UnaryCall call(context, around_.door, "Jobs/ListRounds");
    return call.AskWith(FromProto(*request), [&](const RoundQuery& query) {
      around_.core.ListRounds(query, [call, response](const absl::StatusOr<RoundPage>& page) {
        if (!page.ok()) return call.Finish(page.status());
        for (const job::RoundRecord& round : page->rounds.items) {
          *response->add_rounds() = ToProto(round);
        }
        response->set_next_page_token(page->rounds.next);
        for (const job::GroupRecord& group : page->groups) *response->add_groups() = ToProto(group);
        call.Finish(absl::OkStatus());
      });
    });
  }

  Reactor* ListValidations(Context* context, const v1::ListValidationsRequest* request,
                           v1::ListValidationsResponse* response) override {
    const UnaryCall call(context, around_.door, "Jobs/ListValidations");
    return call.AskWith(JobOf(*request), [&](const std::string& id) {
      around_.core.ListValidations(
          id,
          [call, response](const absl::StatusOr<std::vector<job::ValidationRecord>>& validations) {
            if (!validations.ok()) return call.Finish(validations.status());
            for (const job::ValidationRecord& record : *validations) {
              *response->add_validations() = ToProto(record);
            }
            call.Finish(absl::OkStatus());
          });
    });
  }

  Reactor* ListDecisions(Context* context, const v1::ListDecisionsRequest* request,
                         v1::ListDecisionsResponse* response) override {
    const UnaryCall call(context, around_.door, "Jobs/ListDecisions");
    return call.AskWith(FromProto(*request), [&](const DecisionQuery& query) {
      around_.core.ListDecisions(
          query, [call, response,
                  id = query.id](const absl::StatusOr<store::Page<job::DecisionRecord>>& page) {
            if (!page.ok()) return call.Finish(page.status());
            for (const job::DecisionRecord& record : page->items) {
              *response->add_decisions() = ToProto(id, record.decision);
            }
            response->set_next_page_token(page->next);
            call.Finish(absl::OkStatus());
          });
    });
  }

  Reactor* RevertDecision(Context* context, const v1::RevertDecisionRequest* request,
                          v1::RevertDecisionResponse* response) override {
    const UnaryCall call(context, around_.door, "Jobs/RevertDecision");
    return call.AskWith(FromProto(*request), [&](const CoreRunner::RevertQuery& query) {
      const std::string& id = query.decision.job;
      ForOwnJob(around_, call, id, [core = &around_.core, call, query, response, id] {
        core->RevertDecision(
            query, [call, response, id](const absl::StatusOr<CoreRunner::Reverted>& reverted) {
              if (reverted.ok()) {
                *response->mutable_job() = ToProto(reverted->job);
                *response->mutable_decision() = ToProto(id, reverted->decision);
              }
              call.Finish(reverted.status());
            });
      });
    });
  }

  Reactor* GetDeviceValues(Context* context, const v1::GetDeviceValuesRequest* request,
                           v1::DeviceValues* response) override {
    const UnaryCall call(context, around_.door, "Jobs/GetDeviceValues");
    return call.AskWith(JobOf(*request), [&](const std::string& id) {
      around_.core.ValueDevices(id,
                                [call, response](const absl::StatusOr<v1::DeviceValues>& values) {
                                  if (values.ok()) *response = *values;
                                  call.Finish(values.status());
                                });
    });
  }

  grpc::ServerWriteReactor<v1::JobEvent>* WatchJob(Context* context,
                                                   const v1::WatchJobRequest* request) override {
    return StartWatch(around_.core, context, around_.door, *request);
  }

  grpc::ServerWriteReactor<v1::LogEntry>* StreamLogs(
      Context* context, const v1::StreamLogsRequest* request) override {
    return StartLogs(around_, context, *request);
  }

  grpc::ServerWriteReactor<v1::ArtifactChunk>* DownloadArtifact(
      Context* context, const v1::DownloadArtifactRequest* request) override {
    return StartDownload(around_, context, *request);
  }

 private:
  // A change of a job that is one event of the core, and says nothing but which job.
  template <typename Event>
  Reactor* Change(const UnaryCall& call, const auto& request, v1::Job* response) {
    return call.AskWith(JobOf(request), [&](const std::string& id) {
      ForOwnJob(around_, call, id, [core = &around_.core, call, id, response] {
        core->ChangeJob(
            id, [](JobId job) { return Event{.job = job}; }, WithJob(call, response));
      });
    });
  }

  const FileSurroundings around_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobsService(const FileSurroundings& surroundings) {
  return std::make_unique<JobsService>(surroundings);
}

}  // namespace tactus::service
