// The part of CoreRunner that changes jobs for users.

#include <algorithm>
#include <chrono>
#include <utility>

#include "coordinator/shell/core_runner.h"
#include "coordinator/shell/job_conversion.h"
#include "coordinator/spec/spec_update.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

const runtime::ErrorReason kJobOver = {.reason = "JOB_OVER"};
const runtime::ErrorReason kJobFinishing = {.reason = "JOB_FINISHING"};
const runtime::ErrorReason kJobNotOver = {.reason = "JOB_NOT_OVER"};
const runtime::ErrorReason kJobHasWorkers = {.reason = "JOB_HAS_WORKERS"};

absl::Status NotNow(const std::string& id, const std::string& why, runtime::ErrorReason reason) {
  reason.metadata["job"] = id;
  return runtime::WithReason(absl::FailedPreconditionError(JobName(id) + ": " + why), reason);
}

absl::Status Over(const std::string& id) { return NotNow(id, "it is over", kJobOver); }

bool Heard(const job::JobRecord& record, const std::string& request) {
  const std::vector<std::string>& heard = record.revert_requests;
  return std::ranges::find(heard, request) != heard.end();
}

absl::Status NotTraining(const job::JobRecord& record) {
  return NotNow(
      record.name,
      "it is " + std::string(job::NameOf(record.state)) + ", allowed is a job that trains",
      {.reason = "JOB_NOT_TRAINING"});
}

constexpr char kUnmeasured[] =
    "speeds and transfer are not measured yet; ask again when it has trained for some rounds";

absl::Status NoSuchDecision(const DecisionName& name) {
  return runtime::WithReason(
      absl::NotFoundError(NameOf(name) +
                          ": no such decision; allowed are those that tactus get "
                          "decisions " +
                          name.job + " lists"),
      {.reason = "DECISION_NOT_FOUND",
       .metadata = {{"job", name.job}, {"decision", policies::IdOf(name.key)}}});
}

absl::Status NotRevertible(const DecisionName& name, const std::string& why) {
  return runtime::WithReason(
      absl::FailedPreconditionError(NameOf(name) + ": cannot be taken back: " + why),
      {.reason = "NOT_REVERTIBLE",
       .metadata = {{"job", name.job}, {"decision", policies::IdOf(name.key)}}});
}

// The specification with the axis among what is frozen.
absl::StatusOr<std::string> FrozenSpec(const std::string& text, policies::Axis axis) {
  v1::JobSpec spec;
  if (!spec.ParseFromString(text)) return absl::DataLossError("spec: cannot be read");
  const std::string field(policies::FieldOf(axis));
  const auto& frozen = spec.adapt().frozen();
  if (std::ranges::find(frozen, field) == frozen.end()) spec.mutable_adapt()->add_frozen(field);
  return spec.SerializeAsString();
}

// Its last round is over or asked for.
bool Finishing(const job::JobRecord& record) {
  return record.state == job::JobState::kStopping || !record.cancel_reason.empty();
}

}  // namespace

// ---- Changes

// Answers a change of a job that is durable, or was given up.
void CoreRunner::Tell(const std::string& id, const absl::Status& status,
                      const Answer<job::JobRecord>& answer) {
  if (!status.ok()) return answer(status);
  FindJob(id, answer);
}

void CoreRunner::UpdateJob(const std::string& id, const v1::UpdateJobRequest& request,
                           Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, request, answer = std::move(answer)]() mutable {
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    const job::JobRecord* record = Current(id);
    if (record == nullptr) return RefuseOver(id, std::move(answer));
    const absl::Status applied = Apply(*record, request, answer);
    if (!applied.ok()) answer(applied);
  });
}

// From what the core has, not from what was published: of two updates in a row the second one
// rests on the first.
absl::Status CoreRunner::Apply(const job::JobRecord& record, const v1::UpdateJobRequest& request,
                               const Answer<job::JobRecord>& answer) {
  if (!request.etag().empty() && request.etag() != EtagOf(record)) {
    return runtime::WithReason(
        absl::AbortedError("etag: found " + request.etag() + ", and the job's is " +
                           EtagOf(record) + "; get the job and try again"),
        {.reason = "ETAG_MISMATCH", .metadata = {{"etag", EtagOf(record)}}});
  }
  if (Finishing(record)) return NotNow(record.name, "it is finishing", kJobFinishing);
  v1::JobSpec spec;
  if (!spec.ParseFromString(record.spec)) return absl::DataLossError("spec: cannot be read");
  absl::StatusOr<spec::UpdatedSpec> updated = spec::ApplyUpdate(spec, record.labels, request);
  if (!updated.ok()) return updated.status();
  if (request.validate_only()) {
    job::JobRecord would = record;
    would.spec = updated->spec.SerializeAsString();
    would.labels = updated->labels;
    answer(std::move(would));
  } else if (!updated->changed) {
    FindJob(record.name, answer);
  } else {
    Handle(
        job::JobUpdated{.job = record.id,
                        .spec = updated->spec.SerializeAsString(),
                        .settings = std::move(updated->settings),
                        .labels = std::move(updated->labels),
                        .needs_restart = updated->needs_restart},
        [this, id = record.name, answer](const absl::Status& status) { Tell(id, status, answer); });
  }
  return absl::OkStatus();
}

// A job that is over is only known to the store.
template <typename T>
void CoreRunner::RefuseOver(const std::string& id, Answer<T> answer) {
  FindStored(id, [id, answer = std::move(answer)](const absl::StatusOr<job::JobRecord>& stored) {
    answer(stored.ok() ? Over(id) : stored.status());
  });
}

void CoreRunner::CancelJob(const std::string& id, job::JobCancelled event,
                           Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, event = std::move(event), answer = std::move(answer)]() mutable {
    const job::JobRecord* record = Current(id);
    if (record == nullptr) record = Visible(id);
    if (record == nullptr) return FindStored(id, std::move(answer));
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    event.job = record->id;
    Handle(event, [this, id, answer = std::move(answer)](const absl::Status& status) {
      Tell(id, status, answer);
    });
  });
}

void CoreRunner::ChangeJob(const std::string& id, std::function<job::Event(JobId)> event,
                           Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, event = std::move(event), answer = std::move(answer)]() mutable {
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    const job::JobRecord* record = Current(id);
    if (record == nullptr) return RefuseOver(id, std::move(answer));
    if (Finishing(*record)) return answer(NotNow(id, "it is finishing", kJobFinishing));
    Handle(event(record->id), [this, id, answer = std::move(answer)](const absl::Status& status) {
      Tell(id, status, answer);
    });
  });
}

// ---- Decisions

// A request that was heard before is handed on all the same: it changes nothing, and its answer
// comes when what the first one did is durable.
void CoreRunner::RevertDecision(const RevertQuery& query, Answer<Reverted> answer) {
  around_.control.Post([this, query, answer = std::move(answer)]() mutable {
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    const std::string& id = query.decision.job;
    const job::JobRecord* record = Current(id);
    if (record == nullptr) return RefuseOver(id, std::move(answer));
    const bool trains = record->state == job::JobState::kRunning;
    if (!trains && !Heard(*record, query.request_id)) return answer(NotTraining(*record));
    around_.storage.Post([this, query, job = record->id, answer = std::move(answer)] {
      absl::StatusOr<job::DecisionRecord> found =
          around_.store.FindDecision(job, query.decision.key);
      if (absl::IsNotFound(found.status())) return answer(NoSuchDecision(query.decision));
      if (!found.ok()) return answer(found.status());
      around_.control.Post([this, query, decision = std::move(found->decision), answer] {
        Revert(query, decision, answer);
      });
    });
  });
}

// Control thread.
void CoreRunner::Revert(const RevertQuery& query, const policies::Decision& decision,
                        const Answer<Reverted>& answer) {
  const std::string& id = query.decision.job;
  const job::JobRecord* record = Current(id);
  if (record == nullptr) return RefuseOver(id, answer);
  const bool again = Heard(*record, query.request_id);
  const std::string refusal = again ? "" : cluster_.WhyNotReverted(record->id, decision);
  if (!refusal.empty()) return answer(NotRevertible(query.decision, refusal));
  absl::StatusOr<std::string> spec = FrozenSpec(record->spec, decision.axis);
  if (!spec.ok()) return answer(spec.status());
  if (query.validate_only) {
    job::JobRecord would = *record;
    would.spec = *std::move(spec);
    return answer(Reverted{.job = std::move(would), .decision = decision});
  }
  Handle(job::DecisionReverted{.job = record->id,
                               .decision = decision,
                               .spec = *std::move(spec),
                               .request_id = query.request_id},
         [this, id, decision, answer](const absl::Status& status) {
           Tell(id, status, [decision, answer](const absl::StatusOr<job::JobRecord>& job) {
             if (!job.ok()) return answer(job.status());
             answer(Reverted{.job = *job, .decision = decision});
           });
         });
}

// A forecast for each member takes a while in large groups: not on the control thread.
void CoreRunner::ValueDevices(const std::string& id, Answer<v1::DeviceValues> answer) {
  around_.control.Post([this, id, answer = std::move(answer)]() mutable {
    const job::JobRecord* record = Current(id);
    if (record == nullptr) return RefuseOver(id, std::move(answer));
    if (record->state != job::JobState::kRunning) return answer(NotTraining(*record));
    std::optional<policies::MeasuredGroup> group = cluster_.Measured(record->id);
    if (!group) return answer(NotNow(id, kUnmeasured, {.reason = "NOT_MEASURED"}));
    around_.files.Post([record = *record, group = *std::move(group), answer = std::move(answer)] {
      answer(ToProto(record, policies::ValueDevices(group)));
    });
  });
}

// ---- The end

bool CoreRunner::HasWorkers(const std::string& id) const {
  const job::Membership& membership = cluster_.membership();
  for (const auto& [name, node] : membership.nodes()) {
    for (const job::DeviceRecord& device : node.devices) {
      for (const job::Holder& holder : membership.HoldersOf(name, device.name)) {
        if (holder.job_name == id) return true;
      }
    }
  }
  return false;
}

void CoreRunner::DeleteJob(const std::string& id, Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, answer = std::move(answer)] {
    const absl::Status admitted = AdmitChange();
    if (!admitted.ok()) return answer(admitted);
    if (Visible(id) != nullptr || Current(id) != nullptr) {
      return answer(NotNow(id, "it is not over; cancel it first", kJobNotOver));
    }
    if (HasWorkers(id)) {
      return answer(
          runtime::WithRetry(NotNow(id, "it is over, but workers of it still end", kJobHasWorkers),
                             std::chrono::seconds(5)));
    }
    around_.storage.Post([this, id, answer] {
      absl::StatusOr<job::JobRecord> gone = DeleteStored(id);
      if (!gone.ok()) return answer(std::move(gone));
      around_.files.Post([this, id] { around_.forget_files(id); });
      around_.control.Post([this, gone = *std::move(gone), answer] {
        Forget({{.id = gone.id, .name = gone.name, .request_id = gone.request_id}});
        answer(gone);
      });
    });
  });
}

void CoreRunner::Forget(const std::vector<store::GoneJob>& gone) {
  for (const store::GoneJob& job : gone) {
    history_.Forget(job.id);
    requests_.Forget(job.request_id);
    watchers_.End(job.id, NoSuchJob(job.name));
    waiters_.Gone(job.id);
  }
}

void CoreRunner::TellSetAside(const std::vector<store::SetAsideJob>& jobs) const {
  for (const store::SetAsideJob& job : jobs) {
    around_.metrics.CountSetAside();
    runtime::Logger("store")->error("job set aside job={} job_number={} reason={}", job.name,
                                    job.id.value, runtime::Quoted(job.reason));
  }
}

// Storage thread.
absl::StatusOr<job::JobRecord> CoreRunner::DeleteStored(const std::string& id) {
  absl::StatusOr<job::JobRecord> record = around_.store.FindJob(id);
  if (absl::IsNotFound(record.status())) return NoSuchJob(id);
  if (!record.ok()) return record;
  if (!job::IsFinal(record->state)) {
    return NotNow(id, "it is not over; cancel it first", kJobNotOver);
  }
  const absl::Status deleted = around_.store.DeleteJob(record->id);
  if (!deleted.ok()) return deleted;
  return record;
}

}  // namespace tactus::service
