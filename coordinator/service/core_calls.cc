// The part of CoreRunner that answers users' calls.

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <utility>

#include "coordinator/service/core_runner.h"
#include "coordinator/service/job_conversion.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

absl::Status NoSuchJob(const std::string& id) {
  return runtime::WithReason(absl::NotFoundError(JobName(id) + ": no such job"),
                             {.reason = "JOB_NOT_FOUND", .metadata = {{"job", id}}});
}

v1::Node NodeFrom(const NodeView& view, const job::Membership& membership) {
  v1::Node node;
  node.set_name("nodes/" + view.name);
  node.set_metrics_address(view.metrics_address);
  node.set_connected(view.connected);
  *node.mutable_last_seen_time() = ToTimestamp(view.last_seen);
  node.set_agent_version(view.agent_version);
  for (const job::DeviceRecord& record : view.devices) {
    v1::Device* device = node.add_devices();
    device->set_name(record.name);
    device->set_kind(ToProto(record.kind));
    device->set_model(record.model);
    device->set_emulated_speed(record.emulated_speed);
    const job::Holder* holder = membership.HolderOf(view.name, record.name);
    if (holder != nullptr) device->set_job(JobName(holder->job_name));
  }
  return node;
}

}  // namespace

void CoreRunner::CreateJob(NewJob job, Answer<job::JobRecord> answer) {
  around_.control.Post([this, job = std::move(job), answer = std::move(answer)]() mutable {
    Submit(std::move(job), std::move(answer));
  });
}

// Makes the record durable before the core hears of the job, so that a job whose write failed is
// none.
void CoreRunner::Submit(NewJob job, Answer<job::JobRecord> answer) {
  const std::string request = job.request_id;
  if (!request.empty()) {
    const auto [entry, first] = in_creation_.try_emplace(request);
    if (!first) return entry->second.push_back(std::move(answer));
  }
  around_.storage.Post([this, job = std::move(job), answer = std::move(answer)]() mutable {
    const std::string id = job.request_id;
    absl::StatusOr<job::JobRecord> stored = absl::NotFoundError("");
    if (!id.empty()) stored = around_.store.FindJobByRequest(id);
    const bool fresh = absl::IsNotFound(stored.status());
    if (fresh) stored = WriteNew(std::move(job));
    around_.control.Post([this, stored = std::move(stored), fresh, answer, id] {
      Answers answers = {answer};
      const auto waiting = in_creation_.extract(id);
      if (waiting) answers.insert(answers.end(), waiting.mapped().begin(), waiting.mapped().end());
      OnSubmitted(stored, fresh, std::move(answers));
    });
  });
}

// Names the job and makes it durable. Storage thread.
absl::StatusOr<job::JobRecord> CoreRunner::WriteNew(NewJob job) {
  job::JobRecord record;
  record.id = JobId{last_job_ + 1};
  record.name = job.settings.name + "-" + std::to_string(record.id.value);
  record.uid = boost::uuids::to_string(boost::uuids::random_generator()());
  record.request_id = std::move(job.request_id);
  record.spec = std::move(job.spec);
  record.settings = std::move(job.settings);
  record.labels = std::move(job.labels);
  record.create_time = record.update_time = runtime::WallNow();
  const absl::Status written = around_.store.Write({.jobs = {record}});
  if (!written.ok()) return written;
  ++last_job_;
  return record;
}

void CoreRunner::OnSubmitted(const absl::StatusOr<job::JobRecord>& stored, bool fresh,
                             Answers answers) {
  if (stored.ok() && fresh) {
    visible_[stored->id] = *stored;
    Handle(job::JobSubmitted{*stored}, {});
  }
  for (const Answer<job::JobRecord>& answer : answers) answer(stored);
}

const job::JobRecord* CoreRunner::Visible(const std::string& id) const {
  const auto found = visible_.find(JobIdOf(id));
  return found == visible_.end() || found->second.name != id ? nullptr : &found->second;
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

void CoreRunner::FindUnfinished(const std::string& id, Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, answer = std::move(answer)] {
    const job::JobRecord* record = Visible(id);
    if (record == nullptr) return answer(NoSuchJob(id));
    answer(*record);
  });
}

void CoreRunner::ListJobs(int page_size, const std::string& page_token,
                          Answer<store::Page<job::JobRecord>> answer) {
  around_.control.Post([this, page_size, page_token, answer = std::move(answer)] {
    around_.storage.Post([this, page_size, page_token, answer, visible = visible_] {
      absl::StatusOr<store::Page<job::JobRecord>> page =
          around_.store.ListJobs(page_size, page_token);
      if (!page.ok()) return answer(page.status());
      for (job::JobRecord& record : page->items) {
        const auto newer = visible.find(record.id);
        if (newer != visible.end() && !job::IsFinal(record.state)) record = newer->second;
      }
      answer(std::move(page));
    });
  });
}

void CoreRunner::ListRounds(const std::string& id, int page_size, const std::string& page_token,
                            Answer<store::Page<job::RoundRecord>> answer) {
  around_.storage.Post([this, id, page_size, page_token, answer = std::move(answer)] {
    const absl::StatusOr<job::JobRecord> record = around_.store.FindJob(id);
    if (absl::IsNotFound(record.status())) return answer(NoSuchJob(id));
    if (!record.ok()) return answer(record.status());
    answer(around_.store.ListRounds(record->id, page_size, page_token));
  });
}

void CoreRunner::ListDecisions(const std::string& id, int page_size, const std::string& page_token,
                               Answer<store::Page<job::DecisionRecord>> answer) {
  around_.storage.Post([this, id, page_size, page_token, answer = std::move(answer)] {
    const absl::StatusOr<job::JobRecord> record = around_.store.FindJob(id);
    if (absl::IsNotFound(record.status())) return answer(NoSuchJob(id));
    if (!record.ok()) return answer(record.status());
    answer(around_.store.ListDecisions(record->id, page_size, page_token));
  });
}

void CoreRunner::CancelJob(const std::string& id, bool discard, Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, discard, answer = std::move(answer)]() mutable {
    const job::JobRecord* record = Visible(id);
    if (record == nullptr) return FindStored(id, std::move(answer));
    const job::JobCancelled event = {
        .job = record->id, .reason = "cancelled by the user", .discard = discard};
    Handle(event, [this, id, answer = std::move(answer)] { FindJob(id, answer); });
  });
}

void CoreRunner::Watch(const std::string& id, const std::shared_ptr<JobWatcher>& watcher) {
  const auto show = [watcher](const job::JobRecord& record) {
    v1::JobEvent event;
    *event.mutable_time() = ToTimestamp(runtime::WallNow());
    *event.mutable_job() = ToProto(record);
    watcher->OnEvent(event);
  };
  around_.control.Post([this, id, watcher, show] {
    if (const job::JobRecord* record = Visible(id)) {
      if (!watchers_.Add(record->id, watcher)) {
        return watcher->OnEnd(absl::ResourceExhaustedError(
            "watch: " + std::to_string(JobWatchers::kWatchersMax) + " watches are open"));
      }
      return show(*record);
    }
    FindStored(id, [this, watcher, show](const absl::StatusOr<job::JobRecord>& stored) {
      around_.control.Post([watcher, show, stored] {
        if (stored.ok()) show(*stored);
        watcher->OnEnd(stored.status());
      });
    });
  });
}

void CoreRunner::Unwatch(const std::shared_ptr<JobWatcher>& watcher) {
  around_.control.Post([this, watcher] { watchers_.Remove(watcher.get()); });
}

void CoreRunner::ListNodes(Answer<std::vector<v1::Node>> answer) {
  around_.control.Post([this, answer = std::move(answer)] {
    std::vector<v1::Node> nodes;
    for (const NodeView& view : sessions_.Nodes()) {
      nodes.push_back(NodeFrom(view, cluster_.membership()));
    }
    answer(std::move(nodes));
  });
}

void CoreRunner::ReportArtifact(const std::string& id, const job::ArtifactRecord& artifact,
                                Answer<job::JobRecord> answer) {
  around_.control.Post([this, id, artifact, answer = std::move(answer)] {
    const job::JobRecord* record = Visible(id);
    if (record == nullptr) return answer(NoSuchJob(id));
    Handle(job::ArtifactStored{.job = record->id, .artifact = artifact},
           [answer, copy = *record] { answer(copy); });
  });
}

}  // namespace tactus::service
