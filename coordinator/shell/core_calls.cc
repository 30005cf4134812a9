// The part of CoreRunner that answers what users ask of jobs.

#include <algorithm>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <chrono>
#include <utility>

#include "coordinator/job/attempts.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/shell/core_runner.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

SharedEvent Snapshot(const job::JobRecord& record, const std::string& token) {
  v1::JobEvent event;
  *event.mutable_time() = ToTimestamp(runtime::WallNow());
  *event.mutable_job() = ToProto(record);
  event.set_resume_token(token);
  return std::make_shared<const v1::JobEvent>(std::move(event));
}

}  // namespace

absl::Status NoSuchJob(const std::string& id) {
  return runtime::WithReason(absl::NotFoundError(JobName(id) + ": no such job"),
                             {.reason = "JOB_NOT_FOUND", .metadata = {{"job", id}}});
}

// ---- New jobs

absl::Status CoreRunner::AdmitChange() const {
  if (!write_error_.empty()) {
    return runtime::WithReason(
        absl::UnavailableError("store: cannot write, and tries again: " + write_error_),
        {.reason = "STORE_UNAVAILABLE"});
  }
  if (!queue_.full()) return absl::OkStatus();
  return runtime::WithReason(
      absl::ResourceExhaustedError(
          "coordinator: " + std::to_string(delivery::ActionQueue::kListsMax) +
          " changes wait to be written"),
      {.reason = "OVERLOADED"});
}

void CoreRunner::CreateJob(NewJob job, Answer<job::JobRecord> answer) {
  around_.control.Post([this, job = std::move(job), answer = std::move(answer)]() mutable {
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    if (job.request_id.empty()) return Submit(std::move(job), std::move(answer));
    const std::string* const made = requests_.Recent(job.request_id);
    if (made != nullptr) return FindJob(*made, std::move(answer));
    switch (requests_.Begin(job.request_id, answer)) {
      case RequestIndex::Place::kFirst:
        return LookUp(std::move(job));
      case RequestIndex::Place::kBehind:
        return;
      case RequestIndex::Place::kFull:
        return answer(
            runtime::WithReason(absl::ResourceExhaustedError(
                                    "request_id: " + std::to_string(RequestIndex::kWaitersMax) +
                                    " calls with this one wait already"),
                                {.reason = "TOO_MANY_WAITERS"}));
    }
  });
}

// The request may be one of long ago, which the store alone remembers.
void CoreRunner::LookUp(NewJob job) {
  around_.storage.Post([this, job = std::move(job)]() mutable {
    const std::string& request = job.request_id;
    absl::StatusOr<job::JobRecord> stored = around_.store.FindJobByRequest(request);
    around_.control.Post([this, job = std::move(job), stored = std::move(stored)]() mutable {
      const std::string id = job.request_id;
      if (!absl::IsNotFound(stored.status())) return requests_.End(id, stored);
      Submit(std::move(job), [this, id](const absl::StatusOr<job::JobRecord>& record) {
        around_.control.Post([this, id, record] { requests_.End(id, record); });
      });
    });
  });
}

// The core's PersistJob makes the job durable, together with whatever else waits to be written.
void CoreRunner::Submit(NewJob job, Answer<job::JobRecord> answer) {
  const std::size_t limit = around_.unfinished_max;
  if (visible_.size() + in_creation_ >= limit) {
    return answer(runtime::WithRetry(
        runtime::WithReason(
            absl::ResourceExhaustedError("jobs: " + std::to_string(limit) +
                                         " are not over, which is all that are allowed"),
            {.reason = "QUEUE_FULL", .metadata = {{"limit", std::to_string(limit)}}}),
        std::chrono::seconds(60)));
  }
  job::JobRecord record = Named(std::move(job));
  const std::string id = record.name;
  ++in_creation_;
  Handle(job::JobSubmitted{std::move(record)},
         [this, id, answer = std::move(answer)](const absl::Status& status) {
           --in_creation_;
           Tell(id, status, answer);
         });
}

job::JobRecord CoreRunner::Named(NewJob job) {
  job::JobRecord record;
  record.id = JobId{++last_job_};
  record.name = numbers_.Next(job.settings.name);
  ids_[record.name] = record.id;
  record.uid = boost::uuids::to_string(boost::uuids::random_generator()());
  record.request_id = std::move(job.request_id);
  record.owner = std::move(job.owner);
  if (!job.from.empty()) {
    record.from = std::move(job.from);
    record.checkpoint = std::move(job.start);
    job::GoBackToCheckpoint(record);
  }
  record.spec = std::move(job.spec);
  record.settings = std::move(job.settings);
  record.labels = std::move(job.labels);
  record.create_time = record.update_time = runtime::WallNow();
  return record;
}

// ---- Jobs as they are

JobId CoreRunner::IdOf(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? JobId{} : found->second;
}

const job::JobRecord* CoreRunner::Visible(const std::string& id) const {
  const auto found = visible_.find(IdOf(id));
  return found == visible_.end() ? nullptr : &found->second;
}

const job::JobRecord* CoreRunner::Current(const std::string& id) const {
  const job::JobRecord* const record = cluster_.Find(IdOf(id));
  return record == nullptr || job::IsFinal(record->state) ? nullptr : record;
}

void CoreRunner::FindStored(const std::string& id, Answer<job::JobRecord> answer) {
  around_.storage.Post([this, id, answer = std::move(answer)] {
    absl::StatusOr<job::JobRecord> stored = around_.store.FindJob(id);
    if (absl::IsNotFound(stored.status())) stored = NoSuchJob(id);
    answer(std::move(stored));
  });
}

void CoreRunner::FindJob(const std::string& id, Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, answer = std::move(answer)]() mutable {
    if (const job::JobRecord* record = Visible(id)) return answer(*record);
    FindStored(id, std::move(answer));
  });
}

void CoreRunner::AwaitChange(const ChangeWait& wait, Answer<job::JobRecord> answer) {
  FindJob(wait.id, [this, wait, answer](const absl::StatusOr<job::JobRecord>& found) {
    if (!found.ok() || EtagOf(*found) != wait.etag) return answer(found);
    around_.control.Post([this, wait, answer, id = found->id] {
      // It may have changed since it was looked at.
      const job::JobRecord* record = Visible(wait.id);
      if (record == nullptr) return FindJob(wait.id, answer);  // it is over by now
      if (EtagOf(*record) != wait.etag) return answer(*record);
      if (!closed_.ok()) return answer(closed_);
      const bool added = waiters_.Add({.call = wait.call,
                                       .job = id,
                                       .etag = wait.etag,
                                       .until = runtime::Now() + wait.patience,
                                       .wake = [this, wait, answer] { FindJob(wait.id, answer); }});
      if (added) return PlanExpiry();
      answer(runtime::WithReason(
          absl::ResourceExhaustedError(
              "wait_for_change_after: " + std::to_string(ChangeWaiters::kWaitersMax) +
              " calls wait, which is all that may"),
          {.reason = "TOO_MANY_WAITERS"}));
    });
  });
}

void CoreRunner::LeaveWait(const void* call) {
  around_.control.Post([this, call] { waiters_.Remove(call); });
}

// What the page shows is what the store has, which the filter was applied to; only the progress is
// newer in memory.
void CoreRunner::ListJobs(const store::JobQuery& query,
                          Answer<store::Page<job::JobRecord>> answer) {
  around_.storage.Post([this, query, answer = std::move(answer)] {
    absl::StatusOr<store::Page<job::JobRecord>> page = around_.store.ListJobs(query);
    if (!page.ok()) return answer(page.status());
    around_.control.Post([this, page = *std::move(page), answer]() mutable {
      for (job::JobRecord& record : page.items) {
        const auto newer = visible_.find(record.id);
        if (newer == visible_.end() || newer->second.announced != record.announced) continue;
        record.progress = newer->second.progress;
      }
      around_.storage.Post([page = std::move(page), answer] { answer(page); });
    });
  });
}

void CoreRunner::ListRounds(const RoundQuery& query, Answer<RoundPage> answer) {
  around_.storage.Post([this, query, answer = std::move(answer)] {
    const absl::StatusOr<job::JobRecord> record = around_.store.FindJob(query.id);
    if (absl::IsNotFound(record.status())) return answer(NoSuchJob(query.id));
    if (!record.ok()) return answer(record.status());
    if (query.points_max > 0) {
      absl::StatusOr<std::vector<job::RoundRecord>> rounds =
          around_.store.SampleRounds(record->id, std::max(2, query.points_max), query.first_round);
      if (!rounds.ok()) return answer(rounds.status());
      if (query.points_max == 1 && rounds->size() > 1) rounds->erase(rounds->begin());
      return answer(
          RoundPage{.rounds = {.items = *std::move(rounds), .next = {}}, .groups = record->groups});
    }
    absl::StatusOr<store::Page<job::RoundRecord>> page =
        around_.store.ListRounds(record->id, query.page_size, query.page_token, query.first_round);
    if (!page.ok()) return answer(page.status());
    answer(RoundPage{.rounds = *std::move(page), .groups = record->groups});
  });
}

void CoreRunner::ListValidations(const std::string& id,
                                 Answer<std::vector<job::ValidationRecord>> answer) {
  around_.storage.Post([this, id, answer = std::move(answer)] {
    const absl::StatusOr<job::JobRecord> record = around_.store.FindJob(id);
    if (absl::IsNotFound(record.status())) return answer(NoSuchJob(id));
    if (!record.ok()) return answer(record.status());
    answer(around_.store.ListValidations(record->id));
  });
}

void CoreRunner::ListDecisions(const DecisionQuery& query,
                               Answer<store::Page<job::DecisionRecord>> answer) {
  around_.storage.Post([this, query, answer = std::move(answer)] {
    const absl::StatusOr<job::JobRecord> record = around_.store.FindJob(query.id);
    if (absl::IsNotFound(record.status())) return answer(NoSuchJob(query.id));
    if (!record.ok()) return answer(record.status());
    if (query.newest > 0) {
      absl::StatusOr<std::vector<job::DecisionRecord>> newest =
          around_.store.NewestDecisions(record->id, query.newest);
      if (!newest.ok()) return answer(newest.status());
      return answer(store::Page<job::DecisionRecord>{.items = *std::move(newest), .next = {}});
    }
    absl::StatusOr<store::Page<job::DecisionRecord>> page =
        around_.store.ListDecisions(record->id, query.page_size, query.page_token);
    if (!page.ok()) return answer(page.status());
    answer(std::move(page));
  });
}

// ---- Files of jobs

// A group that has taken another's place has no use for files of that, however long they are.
absl::Status CoreRunner::CheckArtifact(const Brought& file) const {
  const job::JobRecord* record = Current(file.id);
  if (record == nullptr) return NoSuchJob(file.id);
  if (file.allow != nullptr) {
    const absl::Status allowed =
        file.allow(file.id, job::MakerNode(*record, file.worker, file.artifact));
    if (!allowed.ok()) return allowed;
  }
  if (MayBring(*record, file.worker, file.artifact)) return absl::OkStatus();
  return absl::FailedPreconditionError("worker_id: " + std::to_string(file.worker.value) +
                                       " is not of the job's present group");
}

void CoreRunner::AdmitArtifact(const Brought& file,
                               std::function<void(const absl::Status&)> answer) {
  around_.control.Post([this, file, answer = std::move(answer)] {
    const absl::Status admitted = CheckArtifact(file);
    if (admitted.ok()) {
      Handle(job::ArtifactComing{.job = Current(file.id)->id, .worker = file.worker}, {});
    }
    answer(admitted);
  });
}

void CoreRunner::ReportArtifact(const Brought& file,
                                std::function<void(const absl::Status&)> answer) {
  around_.control.Post([this, file, answer = std::move(answer)]() mutable {
    // Whoever brought it may be gone before a full disk has room again, and asks anew.
    absl::Status admitted = AdmitChange();
    if (admitted.ok()) admitted = CheckArtifact(file);
    if (!admitted.ok()) return answer(admitted);
    Handle(
        job::ArtifactStored{
            .job = Current(file.id)->id, .artifact = file.artifact, .worker = file.worker},
        std::move(answer));
  });
}

// ---- Watches

// Control thread. The job is not over.
void CoreRunner::ShowAndFollow(const job::JobRecord& record, const std::string& resume_token,
                               const std::shared_ptr<JobWatcher>& watcher) {
  if (!closed_.ok()) return watcher->OnEnd(closed_);
  std::vector<SharedEvent> missed;
  if (!resume_token.empty()) {
    absl::StatusOr<std::vector<SharedEvent>> events =
        history_.After(record.id, record.uid, resume_token);
    if (!events.ok()) return watcher->OnEnd(events.status());
    missed = *std::move(events);
  }
  const absl::Status added = watchers_.Add(record.id, watcher);
  if (!added.ok()) return watcher->OnEnd(added);
  history_.Keep(record.id, record.uid);
  if (resume_token.empty()) {
    missed.push_back(Snapshot(record, history_.Token(record.uid)));
  }
  for (const SharedEvent& event : missed) watcher->OnEvent(event);
}

void CoreRunner::Watch(const std::string& id, const std::string& resume_token,
                       const std::shared_ptr<JobWatcher>& watcher) {
  around_.control.Post([this, id, resume_token, watcher] {
    if (const job::JobRecord* record = Visible(id)) {
      return ShowAndFollow(*record, resume_token, watcher);
    }
    FindStored(id, [this, resume_token, watcher](const absl::StatusOr<job::JobRecord>& stored) {
      around_.control.Post([this, resume_token, watcher, stored] {
        if (!stored.ok()) return watcher->OnEnd(stored.status());
        // It may have been published since.
        const job::JobRecord* record = Visible(stored->name);
        if (record != nullptr) return ShowAndFollow(*record, resume_token, watcher);
        if (resume_token.empty()) {
          watcher->OnEvent(Snapshot(*stored, history_.Token(stored->uid)));
          return watcher->OnEnd(absl::OkStatus());
        }
        const absl::StatusOr<std::vector<SharedEvent>> missed =
            history_.After(stored->id, stored->uid, resume_token);
        if (missed.ok()) {
          for (const SharedEvent& event : *missed) watcher->OnEvent(event);
        }
        watcher->OnEnd(missed.status());
      });
    });
  });
}

void CoreRunner::Unwatch(const std::shared_ptr<JobWatcher>& watcher) {
  around_.control.Post([this, watcher] { watchers_.Remove(watcher.get()); });
}

}  // namespace tactus::service
